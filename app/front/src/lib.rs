//! The browser's entry: takes over the page that the server has rendered.

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
pub fn hydrate() {
    tollkeeper_app::hydrate();
}
