//! The kit that pages are made of: small parts without knowledge of any page. Each is complete in the
//! server's HTML, and none carries a style attribute, which the content security policy would block.

mod brand;
mod button;
mod field;
mod gate;
mod status;
pub(crate) mod theme;

pub(crate) use brand::Brand;
pub(crate) use button::Button;
pub(crate) use field::Field;
pub(crate) use gate::Gate;
pub(crate) use status::set_status;
pub(crate) use theme::ThemeSwitch;
