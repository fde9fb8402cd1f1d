//! The budget's rule in reserve mode.

/// Whether `estimate` fits beside what is used and what calls in flight hold. `Err` with what they hold, where
/// only they stand in the way.
pub(super) fn fits(limit: u64, used: u64, held: u64, estimate: u64) -> Result<(), Option<u64>> {
    if used >= limit {
        return Err(None);
    }
    // An estimate larger than the whole budget is let through while nothing else is, rather than never.
    let alone = used == 0 && held == 0;
    if alone || used.saturating_add(held).saturating_add(estimate) <= limit {
        Ok(())
    } else if used.saturating_add(estimate) <= limit {
        Err(Some(held))
    } else {
        Err(None)
    }
}
