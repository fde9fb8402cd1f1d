//! The kit that pages are made of: small parts without knowledge of any page. Each is complete in the
//! server's HTML, and none carries a style attribute, which the content security policy would block.

mod alert;
mod brand;
mod button;
mod changes;
mod day_chart;
mod fault;
mod field;
mod figure;
mod frame;
mod gate;
mod guard;
mod head;
mod lead;
mod limit_chip;
mod meter;
mod moment;
mod pager;
mod sparkline;
mod spec;
mod status;
pub(crate) mod theme;
mod time;

pub(crate) use alert::{Alert, FormAlert};
pub(crate) use brand::Brand;
pub(crate) use button::Button;
pub(crate) use changes::Changes;
pub(crate) use day_chart::DayChart;
pub(crate) use fault::{Fault, sentence};
pub(crate) use field::Field;
pub(crate) use frame::Frame;
pub(crate) use gate::Gate;
pub(crate) use guard::{Guard, Need};
pub(crate) use head::PageHead;
pub(crate) use lead::Lead;
pub(crate) use limit_chip::LimitChip;
pub(crate) use meter::Meter;
pub(crate) use moment::Moment;
pub(crate) use pager::Pager;
pub(crate) use sparkline::Sparkline;
pub(crate) use spec::SpecCards;
pub(crate) use status::set_status;
pub(crate) use theme::ThemeSwitch;
pub(crate) use time::Time;
