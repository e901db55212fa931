//! What this process uses, read from the kernel.

use std::fs;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Memory of this process that is in use now.
pub fn resident_bytes() -> usize {
    let statm =
        fs::read_to_string("/proc/self/statm").expect("Linux says how much memory a process uses");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("the second number is the resident pages");
    // SAFETY: sysconf reads a constant of the system.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * usize::try_from(page_bytes).expect("a page has a size")
}

/// Processor time of all threads so far.
pub fn processor_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure; all zeros is a valid one too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000))
        .sum()
}
