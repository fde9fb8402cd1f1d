//! Values that the server tells again whenever they change.

use leptos::prelude::*;
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{EventSource, MessageEvent};

/// The latest value told at an address of `/api/live`, from the server's rendering on. Another address is
/// another stream; no address is none. The browser connects again by itself when a stream ends.
pub(crate) fn live<T>(seed: Option<T>, address: Signal<Option<String>>) -> ReadSignal<Option<T>>
where
    T: DeserializeOwned + Send + Sync + 'static,
{
    let (latest, tell) = signal(seed);
    Effect::new(move || {
        let Some(source) = address.get().and_then(|address| EventSource::new(&address).ok()) else {
            return;
        };
        let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let value = event.data().as_string().and_then(|data| serde_json::from_str(&data).ok());
            if let Some(value) = value {
                let _ = tell.try_set(Some(value));
            }
        });
        source.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        let open = SendWrapper::new((source, heard));
        on_cleanup(move || {
            let (source, _heard) = open.take();
            source.set_onmessage(None);
            source.close();
        });
    });
    latest
}
