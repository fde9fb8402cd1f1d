//! Requests to the JSON API, with its errors as their sentences.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, Headers, ReadableStreamDefaultReader, RequestInit, Response};

use super::events::{Event, Events};

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Failed {
    /// The request was stopped by who made it.
    Stopped,
    /// The server's sentence, and after how many seconds it says to ask again.
    Refused { status: u16, sentence: String, retry_after_s: Option<u64> },
    /// The server can't be reached, or the connection broke.
    Unreachable,
    /// What came can't be read.
    Garbled,
}

impl Failed {
    pub(crate) fn sentence(&self) -> String {
        match self {
            Failed::Stopped => "stopped".into(),
            Failed::Refused { sentence, .. } => sentence.clone(),
            Failed::Unreachable => "the server can't be reached; check the connection and send again".into(),
            Failed::Garbled => "the answer could not be read; reload the page and send again".into(),
        }
    }

    fn of(error: &JsValue) -> Self {
        let name = error.dyn_ref::<js_sys::Error>().map(js_sys::Error::name);
        if name.is_some_and(|name| name == "AbortError") { Failed::Stopped } else { Failed::Unreachable }
    }
}

/// The form of every error of `/api`.
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

/// Sends JSON and waits for the head of the answer, which is one of success.
pub(crate) async fn post(
    url: &str,
    body: &str,
    accept: &str,
    signal: Option<&AbortSignal>,
) -> Result<Response, Failed> {
    let headers = Headers::new().map_err(|error| Failed::of(&error))?;
    for (name, value) in [("content-type", "application/json"), ("accept", accept)] {
        headers.set(name, value).map_err(|error| Failed::of(&error))?;
    }
    let request = RequestInit::new();
    request.set_method("POST");
    request.set_headers(&headers);
    request.set_body(&JsValue::from_str(body));
    request.set_signal(signal);
    send(url, &request).await
}

/// Reads a whole answer.
pub(crate) async fn json<T: DeserializeOwned>(response: &Response) -> Result<T, Failed> {
    let text = response.text().map_err(|error| Failed::of(&error))?;
    let text = JsFuture::from(text).await.map_err(|error| Failed::of(&error))?;
    serde_json::from_str(&text.as_string().unwrap_or_default()).map_err(|_| Failed::Garbled)
}

/// Reads an answer that is an event stream, to its end.
pub(crate) async fn events(response: &Response, mut each: impl FnMut(Event)) -> Result<(), Failed> {
    let Some(body) = response.body() else {
        return Err(Failed::Garbled);
    };
    let reader: ReadableStreamDefaultReader = body.get_reader().unchecked_into();
    let mut events = Events::default();
    loop {
        let piece = JsFuture::from(reader.read()).await.map_err(|error| Failed::of(&error))?;
        let value = js_sys::Reflect::get(&piece, &"value".into()).map_err(|error| Failed::of(&error))?;
        // The last piece has no value.
        let Some(bytes) = value.dyn_ref::<js_sys::Uint8Array>() else {
            return Ok(());
        };
        events.push(&bytes.to_vec()).into_iter().for_each(&mut each);
    }
}

async fn send(url: &str, request: &RequestInit) -> Result<Response, Failed> {
    let fetched = leptos::prelude::window().fetch_with_str_and_init(url, request);
    let response: Response =
        JsFuture::from(fetched).await.map_err(|error| Failed::of(&error))?.unchecked_into();
    if response.ok() {
        return Ok(response);
    }
    let retry_after = response.headers().get("retry-after").ok().flatten();
    let status = response.status();
    // What stands between the browser and the server, a proxy say, has its own words for its errors.
    let sentence = json::<ErrorBody>(&response).await.map_or_else(
        |_| format!("the server answered with status {status}; try again in a moment"),
        |body| body.error,
    );
    Err(Failed::Refused {
        status,
        sentence,
        retry_after_s: retry_after.and_then(|seconds| seconds.parse().ok()),
    })
}
