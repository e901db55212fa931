//! What the thread that reads another server and the job that stores the messages share.
//!
//! The thread finds the stream and offers it; the job says where to begin; then messages come, in order, until the thread
//! or the job wants to start over. That is a session. Invariants: messages that are taken belong to the session the job
//! has begun, each follows the one before it, and what waits here is bounded by what the thread asks for (`pulls`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::delivery::RemoteDelivery;
use super::origin_api::{OriginStream, ReadStart};
use super::trouble::Trouble;
use crate::storage::commit::work_pool::Job;

/// The state of the connection, for reports about the stream.
#[derive(Debug, Clone, Default)]
pub struct ChannelStatus {
    /// Messages that are not stored here yet.
    pub lag: u64,
    /// It is known that there are none.
    pub is_caught_up: bool,
    /// How long ago the other server last sent something; none if never.
    pub heard: Option<Duration>,
    pub trouble: Option<Trouble>,
}

/// Why a reader ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderEnd {
    /// The server stops, and goes on later.
    Pause,
    /// The stream no longer has this origin: what was made for it is removed.
    Farewell,
}

#[derive(Default)]
struct ChannelState {
    /// Counts the streams that were offered.
    session: u64,
    offered: Option<OriginStream>,
    start: Option<ReadStart>,
    is_anew: bool,
    end: Option<ReaderEnd>,
    queue: VecDeque<RemoteDelivery>,
    /// Messages received in this session and not finished, whether queued here or taken by the job.
    waiting: u64,
    waiting_bytes: usize,
    /// Messages after those received, at the other server.
    pending: u64,
    /// `pending` was reported in this session.
    is_pending_known: bool,
    /// Everything up to this sequence is on disk here.
    confirmed: u64,
    heard_at: Option<Instant>,
    trouble: Option<Trouble>,
}

pub struct RemoteChannel {
    state: Mutex<ChannelState>,
    changed: Condvar,
    job: Arc<Job>,
}

impl RemoteChannel {
    pub fn new(job: &Arc<Job>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            job: Arc::clone(job),
        })
    }

    // The thread's side

    /// Offers a stream that was found; `start` says where to begin, sooner or later.
    pub fn offer(&self, found: OriginStream) {
        let mut state = self.state.lock();
        state.session += 1;
        state.clear();
        state.offered = Some(found);
        state.start = None;
        state.is_anew = false;
        state.trouble = None;
        drop(state);
        self.job.schedule();
    }

    /// Waits a while for where to begin.
    pub fn wait_for_start(&self, timeout: Duration) -> Result<Option<ReadStart>, Trouble> {
        let mut state = self.state.lock();
        if state.start.is_none() && state.end.is_none() {
            self.changed.wait_for(&mut state, timeout);
        }
        state.check()?;
        Ok(state.start)
    }

    /// Hands over what came, and says how many are waiting now, in messages and in bytes.
    pub fn push(&self, came: &mut Vec<RemoteDelivery>, pending: u64) -> Result<(), Trouble> {
        if came.is_empty() {
            return Ok(());
        }
        let mut state = self.state.lock();
        state.check()?;
        state.waiting += came.len() as u64;
        state.waiting_bytes += came.iter().map(RemoteDelivery::size_bytes).sum::<usize>();
        state.pending = pending;
        state.is_pending_known = true;
        state.queue.extend(came.drain(..));
        drop(state);
        self.job.schedule();
        Ok(())
    }

    pub fn set_pending(&self, pending: u64) {
        let mut state = self.state.lock();
        state.pending = pending;
        state.is_pending_known = true;
        drop(state);
        self.job.schedule();
    }

    /// What is waiting to be stored, in messages and in bytes, and up to where everything is.
    pub fn waiting(&self) -> Result<(u64, usize, u64), Trouble> {
        let state = self.state.lock();
        state.check()?;
        Ok((state.waiting, state.waiting_bytes, state.confirmed))
    }

    /// Waits until something was stored, or is wanted otherwise.
    pub fn wait_for_room(&self, timeout: Duration) {
        let mut state = self.state.lock();
        if state.check().is_ok() {
            self.changed.wait_for(&mut state, timeout);
        }
    }

    /// The other server has said something.
    pub fn heard(&self) {
        self.state.lock().heard_at = Some(Instant::now());
    }

    pub fn note(&self, trouble: Trouble) {
        self.state.lock().trouble = Some(trouble);
        self.job.schedule();
    }

    /// Why to end, as soon as there is a reason, and no later than that.
    pub fn wait_for_end(&self, timeout: Duration) -> Option<ReaderEnd> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while state.end.is_none() {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.end
    }

    // The job's side

    /// A stream that was offered and not begun.
    pub fn offered(&self) -> Option<(u64, OriginStream)> {
        let state = self.state.lock();
        let is_open = state.start.is_none() && !state.is_anew;
        let found = state.offered.clone().filter(|_| is_open)?;
        Some((state.session, found))
    }

    /// Begins a session; nothing happens if another one was offered meanwhile.
    pub fn begin(&self, session: u64, start: ReadStart) {
        let mut state = self.state.lock();
        if state.session == session && !state.is_anew {
            state.start = Some(start);
            self.changed.notify_all();
        }
    }

    /// Appends what has come in a session.
    pub fn drain_into(&self, session: u64, out: &mut VecDeque<RemoteDelivery>) {
        let mut state = self.state.lock();
        if state.session == session && !state.is_anew {
            out.append(&mut state.queue);
        }
    }

    /// Messages of a session that were taken are stored, or will not be.
    pub fn finish(&self, session: u64, count: u64, bytes: usize) {
        let mut state = self.state.lock();
        if state.session == session {
            state.waiting = state.waiting.saturating_sub(count);
            state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes);
            self.changed.notify_all();
        }
    }

    /// Everything up to a sequence is on disk.
    pub fn confirm(&self, session: u64, sequence: u64) {
        let mut state = self.state.lock();
        if state.session == session && state.confirmed < sequence {
            state.confirmed = sequence;
            self.changed.notify_all();
        }
    }

    /// The received messages are not wanted: the session must be restarted.
    pub fn restart(&self) {
        let mut state = self.state.lock();
        if state.offered.is_some() && state.start.is_some() {
            state.is_anew = true;
            state.clear();
            self.changed.notify_all();
        }
    }

    pub fn end(&self, end: ReaderEnd) {
        let mut state = self.state.lock();
        state.end = Some(end);
        state.clear();
        self.changed.notify_all();
    }

    pub fn status(&self) -> ChannelStatus {
        let state = self.state.lock();
        ChannelStatus {
            lag: state.pending.saturating_add(state.waiting),
            is_caught_up: state.is_pending_known && state.pending == 0 && state.waiting == 0,
            heard: state.heard_at.map(|at| at.elapsed()),
            trouble: state.trouble.clone(),
        }
    }
}

impl ChannelState {
    fn check(&self) -> Result<(), Trouble> {
        match (self.end, self.is_anew) {
            (Some(_), _) => Err(Trouble::Stopped),
            (None, true) => Err(Trouble::Anew),
            (None, false) => Ok(()),
        }
    }

    /// Nothing of what came is there any more.
    fn clear(&mut self) {
        self.queue.clear();
        self.waiting = 0;
        self.waiting_bytes = 0;
        self.confirmed = 0;
        self.is_pending_known = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::commit::work_pool::WorkPool;
    use crate::stream::replication::remote::delivery::{read, HeardFrame};
    use crate::wire::reply::parse_reply;

    const SOON: Duration = Duration::from_secs(5);

    fn delivery(sequence: u64) -> RemoteDelivery {
        let frame = format!("MSG a 9 $JS.ACK.S.c.1.{sequence}.3.5000.0 2\r\nhi\r\n");
        let (reply, _) = parse_reply(frame.as_bytes()).unwrap().unwrap();
        match read(&reply) {
            Some(HeardFrame::Message { delivery, .. }) => delivery,
            other => panic!("{other:?}"),
        }
    }

    fn an_origin() -> OriginStream {
        OriginStream {
            identity: "id".to_owned(),
            first_sequence: 1,
            is_consumed: false,
        }
    }

    #[test]
    fn what_came_is_counted_until_it_is_finished() {
        let pool = WorkPool::new(&Arc::default());
        let channel = RemoteChannel::new(&pool.job(|| {}));
        let mut taken = VecDeque::new();
        channel.offer(an_origin());
        let (session, offered) = channel.offered().unwrap();
        channel.begin(session, ReadStart::Sequence(4));

        channel
            .push(&mut vec![delivery(4), delivery(5)], 7)
            .unwrap();
        channel.drain_into(session, &mut taken);

        assert_eq!(offered, an_origin());
        assert_eq!(channel.offered(), None);
        let start = channel.wait_for_start(SOON).unwrap();
        assert_eq!(start, Some(ReadStart::Sequence(4)));
        assert_eq!(taken.len(), 2);
        assert_eq!(channel.status().lag, 9);
        channel.finish(
            session,
            2,
            taken.iter().map(RemoteDelivery::size_bytes).sum(),
        );
        channel.confirm(session, 5);
        assert_eq!(channel.waiting(), Ok((0, 0, 5)));
        assert!(!channel.status().is_caught_up);
        channel.set_pending(0);
        assert!(channel.status().is_caught_up);
    }

    #[test]
    fn nothing_of_an_old_session_is_taken() {
        let pool = WorkPool::new(&Arc::default());
        let channel = RemoteChannel::new(&pool.job(|| {}));
        let mut taken = VecDeque::new();
        channel.offer(an_origin());
        let (session, _) = channel.offered().unwrap();
        channel.begin(session, ReadStart::Sequence(1));
        channel.push(&mut vec![delivery(1)], 0).unwrap();

        channel.restart();

        channel.drain_into(session, &mut taken);
        assert!(taken.is_empty());
        let refused = channel.push(&mut vec![delivery(2)], 0);
        assert_eq!(refused, Err(Trouble::Anew));
        channel.offer(an_origin());
        channel.begin(session, ReadStart::Sequence(1));
        assert_eq!(channel.wait_for_start(Duration::ZERO), Ok(None));
        assert_eq!(channel.offered().unwrap().0, session + 1);
    }

    #[test]
    fn whoever_waits_hears_of_the_end() {
        let pool = WorkPool::new(&Arc::default());
        let channel = RemoteChannel::new(&pool.job(|| {}));
        channel.offer(an_origin());

        channel.end(ReaderEnd::Pause);

        assert_eq!(channel.wait_for_start(SOON), Err(Trouble::Stopped));
        assert_eq!(channel.wait_for_end(SOON), Some(ReaderEnd::Pause));
    }
}
