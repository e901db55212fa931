//! How far a check has come, reported in steps that are worth it.

use std::io;

/// Called with the bytes done and the total; an error stops the check.
pub type CheckProgress<'a> = &'a mut dyn FnMut(u64, u64) -> io::Result<()>;

/// Bytes between two reports of progress.
const PROGRESS_STEP_BYTES: u64 = 4 * 1024 * 1024;

/// How far the check has come.
pub struct Meter<'a> {
    progress: CheckProgress<'a>,
    done_bytes: u64,
    pub total_bytes: u64,
    told_bytes: u64,
    stopped: Option<io::Error>,
}

impl<'a> Meter<'a> {
    pub fn new(progress: CheckProgress<'a>) -> Self {
        Self {
            progress,
            done_bytes: 0,
            total_bytes: 0,
            told_bytes: 0,
            stopped: None,
        }
    }

    /// The file being read is done up to here.
    pub fn reached(&mut self, file_position: u64) {
        let bytes = self.done_bytes + file_position;
        if bytes >= self.told_bytes + PROGRESS_STEP_BYTES {
            self.report(bytes);
        }
    }

    fn report(&mut self, bytes: u64) {
        self.told_bytes = bytes;
        if self.stopped.is_none() {
            self.stopped = (self.progress)(bytes, self.total_bytes).err();
        }
    }

    pub fn file_done(&mut self, file_bytes: u64) -> io::Result<()> {
        self.done_bytes += file_bytes;
        self.report(self.done_bytes);
        self.stopped.take().map_or(Ok(()), Err)
    }
}
