//! The largest packet that passes: pure, but for the question whether one does.
//!
//! A path that lets a packet through lets smaller ones through as well; then a few questions find the largest.

/// The largest of `least` to `most` that passes. `least` is known to; the largest is asked for first, as it is what is hoped for.
///
/// One that was lost for another reason is asked for again: what passes must be followed by one that does not.
pub fn largest<E>(least: usize, most: usize, mut passes: impl FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    let mut passed = least;
    while passed < most && !passes(most)? {
        let mut refused = most;
        while refused - passed > 1 {
            let middle = passed + (refused - passed) / 2;
            if passes(middle)? {
                passed = middle;
            } else {
                refused = middle;
            }
        }
        if !passes(refused)? {
            return Ok(passed);
        }
        passed = refused;
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_with_few_questions() {
        for limit in 60..=1500 {
            let mut asked = 0;
            let found = largest(60, 1450, |size| {
                asked += 1;
                Ok::<_, ()>(size <= limit)
            });
            assert_eq!(found, Ok(limit.min(1450)));
            assert!(asked <= 13, "{asked}");
        }
        assert_eq!(largest(60, 1450, |_| Err("gone")), Err("gone"));
        assert_eq!(largest(60, 60, |_| Ok::<_, ()>(false)), Ok(60));
    }

    #[test]
    fn a_question_that_was_lost_is_asked_again() {
        for lost in 1..=13 {
            for limit in [60, 61, 700, 1349, 1350, 1450] {
                let mut asked = 0;
                let found = largest(60, 1450, |size| {
                    asked += 1;
                    Ok::<_, ()>(asked != lost && size <= limit)
                });
                assert_eq!(found, Ok(limit), "question {lost} was lost");
            }
        }
    }
}
