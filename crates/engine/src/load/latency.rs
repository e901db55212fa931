//! How long messages took: samples and their percentiles.

use super::plan::LoadLatency;

/// Samples kept per connection; at full speed every so manieth message is one.
const SAMPLES_MAX: usize = 2_000_000;

#[derive(Debug, Default)]
pub struct Samples {
    nanos: Vec<u64>,
}

impl Samples {
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        if self.nanos.len() < SAMPLES_MAX {
            self.nanos.push(nanos);
        }
    }

    pub fn merge(&mut self, other: Samples) {
        self.nanos.extend(other.nanos);
    }

    /// The percentiles in microseconds.
    pub fn percentiles(mut self) -> Option<LoadLatency> {
        if self.nanos.is_empty() {
            return None;
        }
        self.nanos.sort_unstable();
        let at = |part: f64| {
            let index = ((self.nanos.len() - 1) as f64 * part).round() as usize;
            self.nanos[index] as f64 / 1_000.0
        };
        Some(LoadLatency {
            p50: at(0.50),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_the_sorted_samples() {
        let mut samples = Samples::default();
        for number in (1..=1001).rev() {
            samples.add(number * 1_000);
        }

        let latency = samples.percentiles().unwrap();

        assert_eq!(
            (latency.p50, latency.p99, latency.max),
            (501.0, 991.0, 1001.0)
        );
        assert!(Samples::default().percentiles().is_none());
    }
}
