//! The shape of an answer of `/embeddings`: numbers, of which only the usage is read.

use serde_json::Value;

use super::upstream::{Report, Tally};
use super::{Failure, completion, fault};

/// A whole answer, checked. Nothing is put out, so a report without output tokens is whole.
pub(super) fn read_whole(answer: &Value, tally: &Tally, key: Option<&str>) -> Result<(), Failure> {
    if let Some(error) = fault::error_of(answer) {
        return Err(fault::of_object(error, key));
    }
    if !answer.get("data").is_some_and(Value::is_array) {
        return Err(Failure::Garbled("an answer without embeddings"));
    }
    if let Some(report) = completion::report_of(answer) {
        tally.report(Report { output: report.output.or(Some(0)), ..report });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ledger::StepUsage;
    use crate::model::Usage;

    fn read(answer: &Value) -> Result<StepUsage, Failure> {
        let tally = Tally::new(40);
        read_whole(answer, &tally, None).map(|()| tally.step())
    }

    #[test]
    fn only_input_is_used_and_a_missing_report_is_estimated() {
        let reported =
            json!({"object": "list", "data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}});
        assert_eq!(read(&reported), Ok(StepUsage::reported(Usage { input_tokens: 8, output_tokens: 0 })));
        let silent = json!({"data": [{"embedding": [0.1]}]});
        assert_eq!(read(&silent), Ok(StepUsage::estimated(Usage { input_tokens: 40, output_tokens: 0 })));
    }

    #[test]
    fn what_holds_no_embeddings_is_a_failure() {
        assert!(matches!(read(&json!({"choices": []})), Err(Failure::Garbled(_))));
        let overloaded = json!({"error": {"code": 503}});
        assert!(matches!(read(&overloaded), Err(Failure::Status { status: 503, .. })));
    }
}
