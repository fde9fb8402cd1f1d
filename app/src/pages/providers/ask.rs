//! The questions and forms that stand before the page.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use server_fn::ServerFn;
use tollkeeper::model::fmt::counted;
use tollkeeper::model::providers::{KeyRow, ModelRow, PlatformRow};

use super::model_form::ModelForm;
use super::{Actions, HERE};
use crate::backend::PageError;
use crate::components::{Alert, AskFirst, Field, FormAlert, sentence};

/// What the address asks about. Records that are gone are asked about no more.
#[derive(Clone, PartialEq)]
pub(super) enum Ask {
    AddPlatform,
    RemovePlatform(PlatformRow),
    AddKey(String),
    RotateKey(String, KeyRow),
    RemoveKey(String, KeyRow),
    AddModel(String),
    EditModel(String, ModelRow),
    RemoveModel(String, ModelRow),
}

impl Ask {
    pub(super) fn of(query: &ParamsMap, platforms: &[PlatformRow]) -> Option<Self> {
        let platform = || {
            let id = query.get_str("platform")?;
            platforms.iter().find(|platform| !platform.fixed && platform.id == id)
        };
        let key = || {
            let id = query.get_str("key")?;
            platforms.iter().filter(|platform| !platform.fixed).find_map(|platform| {
                let key = platform.keys.iter().find(|key| key.id == id)?;
                Some((platform.id.clone(), key.clone()))
            })
        };
        let model = || {
            let (platform, id) = (platform()?, query.get_str("model")?);
            let model = platform.models.iter().find(|model| model.id == id)?;
            Some((platform.id.clone(), model.clone()))
        };
        match query.get_str("ask")? {
            "add-platform" => Some(Ask::AddPlatform),
            "remove-platform" => platform().cloned().map(Ask::RemovePlatform),
            "add-key" => platform().map(|platform| Ask::AddKey(platform.id.clone())),
            "rotate-key" => key().map(|(platform, key)| Ask::RotateKey(platform, key)),
            "remove-key" => key().map(|(platform, key)| Ask::RemoveKey(platform, key)),
            "add-model" => platform().map(|platform| Ask::AddModel(platform.id.clone())),
            "edit-model" => model().map(|(platform, model)| Ask::EditModel(platform, model)),
            "remove-model" => model().map(|(platform, model)| Ask::RemoveModel(platform, model)),
            _ => None,
        }
    }
}

#[component]
pub(super) fn Asked(ask: Ask, actions: StoredValue<Actions>) -> impl IntoView {
    let actions = actions.get_value();
    match ask {
        Ask::AddPlatform => view! {
            <AskFirst title="Add a platform" back=HERE>
                <Failure action=actions.add_platform />
                <ActionForm action=actions.add_platform>
                    <div class="form">
                        <Field label="Platform id" name="id" hint="Such as openrouter. It is named in usage and in limits." />
                        <Field
                            label="Base URL"
                            name="base_url"
                            kind="url"
                            hint="OpenAI-compatible, such as https://openrouter.ai/api/v1."
                        />
                        <Buttons word="Add platform" />
                    </div>
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
        Ask::RemovePlatform(row) => {
            let keys = counted(row.keys.len() as u64, "key", "keys");
            let models = counted(row.models.len() as u64, "model", "models");
            view! {
                <AskFirst title=format!("Remove the platform \"{}\"?", row.id) back=HERE>
                    <p>{format!("Its {keys} and {models} go with it. Requests for models that no other platform has are refused from then on.")}</p>
                    <Failure action=actions.remove_platform />
                    {managed_note(row.managed, "adds it again, with its keys")}
                    <ActionForm action=actions.remove_platform>
                        <input type="hidden" name="id" value=row.id.clone() />
                        <Buttons word="Remove platform" danger=true />
                    </ActionForm>
                </AskFirst>
            }
            .into_any()
        }
        Ask::AddKey(platform) => view! {
            <AskFirst title=format!("Add a key to {platform}") back=HERE>
                <Failure action=actions.add_key />
                <ActionForm action=actions.add_key>
                    <input type="hidden" name="platform" value=platform.clone() />
                    <div class="form">
                        <Field label="Label" name="label" hint="Tells the platform’s keys apart." />
                        <Secret />
                        <Buttons word="Add key" />
                    </div>
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
        Ask::RotateKey(platform, key) => view! {
            <AskFirst title=format!("Rotate the key \"{}\" of {platform}?", key.label) back=HERE>
                <p>
                    "Calls use the new secret from the next request on. What the key has used keeps counting, its cooldowns end. The old secret can’t be brought back."
                </p>
                {managed_note(key.managed, "puts the file’s secret back")}
                <Failure action=actions.rotate_key />
                <ActionForm action=actions.rotate_key>
                    <input type="hidden" name="id" value=key.id.clone() />
                    <div class="form">
                        <Secret />
                        <Buttons word="Rotate key" />
                    </div>
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
        Ask::RemoveKey(platform, key) => view! {
            <AskFirst title=format!("Delete the key \"{}\" of {platform}?", key.label) back=HERE>
                <p>"No request uses it from then on, and its secret can’t be brought back. To stop using it for a while, disable it."</p>
                {managed_note(key.managed, "adds it again")}
                <Failure action=actions.remove_key />
                <ActionForm action=actions.remove_key>
                    <input type="hidden" name="id" value=key.id.clone() />
                    <Buttons word="Delete key" danger=true />
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
        Ask::AddModel(platform) => view! {
            <AskFirst title=format!("Add a model to {platform}") back=HERE>
                <Failure action=actions.add_model />
                <ActionForm action=actions.add_model>
                    <input type="hidden" name="platform" value=platform.clone() />
                    <ModelForm model=None />
                    <Buttons word="Add model" />
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
        Ask::EditModel(platform, model) => view! {
            <AskFirst title=format!("Limits of {}", model.id) back=HERE>
                {managed_note(model.managed, "puts the file’s values back")}
                <Failure action=actions.edit_model />
                <ActionForm action=actions.edit_model>
                    <input type="hidden" name="platform" value=platform.clone() />
                    <input type="hidden" name="model" value=model.id.clone() />
                    <ModelForm model=Some(model.settings.clone()) />
                    <Buttons word="Save change" />
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
        Ask::RemoveModel(platform, model) => view! {
            <AskFirst title=format!("Remove the model \"{}\" of {platform}?", model.id) back=HERE>
                <p>{format!("Requests for \"{}\" are refused from then on, unless another model has this alias.", model.settings.alias)}</p>
                {managed_note(model.managed, "adds it again")}
                <Failure action=actions.remove_model />
                <ActionForm action=actions.remove_model>
                    <input type="hidden" name="platform" value=platform.clone() />
                    <input type="hidden" name="model" value=model.id.clone() />
                    <Buttons word="Remove model" danger=true />
                </ActionForm>
            </AskFirst>
        }
        .into_any(),
    }
}

/// Why the form came back, with and without script.
#[component]
fn Failure<S>(action: ServerAction<S>) -> impl IntoView
where
    S: ServerFn<Output = (), Error = PageError> + Clone + Send + Sync + 'static,
{
    // Of an earlier form, which was left since.
    action.clear();
    let failed = move || action.value().get().and_then(Result::err);
    view! {
        <FormAlert function=S::PATH />
        {move || failed().map(|error| view! { <Alert>{sentence(&error.0)}</Alert> })}
    }
    .into_any()
}

fn managed_note(managed: bool, then: &'static str) -> Option<impl IntoView> {
    managed.then(|| {
        view! {
            <p class="notice warn">
                "A directory file made this: the next " <code>"tollkeeper apply"</code> " " {then} "."
            </p>
        }
    })
}

#[component]
fn Secret() -> impl IntoView {
    view! {
        <Field
            label="Secret"
            name="secret"
            kind="password"
            hint="The provider’s key. It is stored sealed and is never shown again."
        />
    }
}

#[component]
fn Buttons(word: &'static str, #[prop(optional)] danger: bool) -> impl IntoView {
    view! {
        <div class="row end">
            <a class="button" href=HERE>
                "Cancel"
            </a>
            <button class="button" class:danger=danger class:primary=!danger type="submit">
                {word}
            </button>
        </div>
    }
}
