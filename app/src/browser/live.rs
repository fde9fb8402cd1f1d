//! Values that the server tells again whenever they change.

use std::time::Duration;

use leptos::ev;
use leptos::prelude::*;
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{EventSource, MessageEvent};

/// After a failure for which the browser gives up, such as a proxy's error, it is tried again so often.
const TRY_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// Calls `told` with each value told at an address of `/api/live`, and the address. Another address is another
/// stream; no address is none. Answers whether the connection is lost at the moment.
///
/// A tab that nobody sees listens to nothing: browsers open few connections to one server, over all tabs. When
/// it is seen again, the first thing it is told is how matters stand.
pub(crate) fn follow<T>(
    address: Signal<Option<String>>,
    told: impl Fn(&str, T) + Clone + 'static,
) -> ReadSignal<bool>
where
    T: DeserializeOwned + 'static,
{
    let (lost, set_lost) = signal(false);
    let again = RwSignal::new(());
    let seen = tab_is_seen();
    Effect::new(move || {
        again.track();
        let Some(address) = address.get().filter(|_| seen.get()) else {
            return;
        };
        let Ok(source) = EventSource::new(&address) else {
            return;
        };
        let told = told.clone();
        let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let _ = set_lost.try_set(false);
            let value = event.data().as_string().and_then(|data| serde_json::from_str(&data).ok());
            if let Some(value) = value {
                told(&address, value);
            }
        });
        let failing = source.clone();
        let failed = Closure::<dyn Fn()>::new(move || {
            let _ = set_lost.try_set(true);
            if failing.ready_state() == EventSource::CLOSED {
                let retry = move || {
                    let _ = again.try_set(());
                };
                set_timeout(retry, TRY_AGAIN_EVERY);
            }
        });
        source.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        source.set_onerror(Some(failed.as_ref().unchecked_ref()));
        let open = SendWrapper::new((source, heard, failed));
        on_cleanup(move || {
            let (source, ..) = &*open;
            source.set_onmessage(None);
            source.set_onerror(None);
            source.close();
        });
    });
    lost
}

/// The latest value told at an address of `/api/live`, from the server's rendering on.
pub(crate) fn live<T>(seed: Option<T>, address: Signal<Option<String>>) -> ReadSignal<Option<T>>
where
    T: DeserializeOwned + Send + Sync + 'static,
{
    let (latest, tell) = signal(seed);
    follow(address, move |_, value| {
        let _ = tell.try_set(Some(value));
    });
    latest
}

fn tab_is_seen() -> ReadSignal<bool> {
    let (seen, set_seen) = signal(true);
    Effect::new(move || {
        let look = move || {
            let _ = set_seen.try_set(!document().hidden());
        };
        look();
        let listener = window_event_listener(ev::visibilitychange, move |_| look());
        on_cleanup(move || listener.remove());
    });
    seen
}
