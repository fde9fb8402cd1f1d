/// Sets the status of the answer that carries this page. In the browser there is none to set.
pub(crate) fn set_status(code: u16) {
    #[cfg(feature = "ssr")]
    if let (Some(response), Ok(status)) = (
        leptos::prelude::use_context::<leptos_axum::ResponseOptions>(),
        axum::http::StatusCode::from_u16(code),
    ) {
        response.set_status(status);
    }
    #[cfg(not(feature = "ssr"))]
    let _ = code;
}
