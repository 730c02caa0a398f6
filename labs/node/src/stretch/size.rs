//! The largest packet that passes: pure, but for the question whether one does.
//!
//! A path that lets a packet through lets smaller ones through as well; then a few questions find the largest.

/// The largest of `least` to `most` that passes. `least` is known to; the largest is asked for first, as it is what is hoped for.
pub fn largest<E>(least: usize, most: usize, mut passes: impl FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    if most <= least || passes(most)? {
        return Ok(most.max(least));
    }
    let (mut passed, mut refused) = (least, most);
    while refused - passed > 1 {
        let middle = passed + (refused - passed) / 2;
        if passes(middle)? {
            passed = middle;
        } else {
            refused = middle;
        }
    }
    Ok(passed)
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
            assert!(asked <= 12, "{asked}");
        }
        assert_eq!(largest(60, 1450, |_| Err("gone")), Err("gone"));
        assert_eq!(largest(60, 60, |_| Ok::<_, ()>(false)), Ok(60));
    }
}
