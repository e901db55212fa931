//! What a store has promised so far, and whether it is kept.

use super::*;

impl Promise {
    pub fn folder(&self) -> &'static str {
        self.folder.unwrap_or(FOLDER)
    }

    /// Everything under way has been acknowledged.
    pub fn acknowledge(&mut self) {
        // Most removals were asked for before anything else; the others leave nothing that a limit could take.
        self.kept
            .retain(|sequence, _| !self.leaving.contains(sequence));
        for (sequence, kept) in std::mem::take(&mut self.staged) {
            self.last_acknowledged = sequence;
            self.kept.insert(sequence, kept);
            self.trim_subjects();
        }
        for sequence in std::mem::take(&mut self.leaving) {
            self.kept.remove(&sequence);
        }
        self.groups.clear();
        if let Some(next_sequence) = self.advancing.take() {
            self.last_acknowledged = self.last_acknowledged.max(next_sequence - 1);
        }
        self.erased.append(&mut self.erasing);
        self.trim();
    }

    /// Everything under way was refused.
    pub fn forget(&mut self) {
        self.staged.clear();
        self.leaving.clear();
        self.erasing.clear();
        self.groups.clear();
        self.advancing = None;
    }

    /// Takes out what has expired. Returns how many, and which are spared because they are the last of their subjects.
    pub fn expire(&mut self, now_ns: i64, spare_last: bool) -> (u64, Vec<u64>) {
        let last: BTreeMap<String, u64> = self
            .kept
            .iter()
            .map(|(sequence, kept)| (kept.subject.clone(), *sequence))
            .collect();
        let due = |kept: &Kept| kept.expires_ns.is_some_and(|at| at <= now_ns);
        let (due, kept): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.kept)
            .into_iter()
            .partition(|(_, kept)| due(kept));
        self.kept = kept;
        let mut spared = Vec::new();
        let mut gone = 0;
        for (sequence, kept) in due {
            if spare_last && last[&kept.subject] == sequence {
                spared.push(sequence);
                self.kept.insert(sequence, kept);
            } else {
                gone += 1;
                self.trimmed.insert(sequence, kept);
            }
        }
        (gone, spared)
    }

    /// Whether a message that is being removed must be overwritten.
    pub fn is_erasing(&self) -> bool {
        !self.erasing.is_empty()
    }

    pub fn trim_subjects(&mut self) {
        let Some(most) = self.limits.per_subject_max else {
            return;
        };
        for name in SUBJECTS {
            let of = self.kept.iter().filter(|(_, kept)| kept.subject == name);
            let of: Vec<u64> = of.map(|(sequence, _)| *sequence).collect();
            for sequence in &of[..of.len().saturating_sub(most as usize)] {
                let kept = self.kept.remove(sequence).expect("it was just seen");
                self.trimmed.insert(*sequence, kept);
            }
        }
    }

    pub fn trim(&mut self) {
        self.trim_subjects();
        while let Some(most) = self.limits.messages_max {
            if self.kept.len() as u64 <= most {
                break;
            }
            self.trimmed.extend(self.kept.pop_first());
        }
    }

    pub fn purged(&self, purge: &Purge) -> Vec<u64> {
        let filter = purge.filter.as_deref().unwrap_or(b">");
        let matching = self
            .kept
            .iter()
            .filter(|(_, kept)| subject::matches(filter, kept.subject.as_bytes()))
            .map(|(sequence, _)| *sequence);
        let mut gone: Vec<u64> = matching
            .filter(|sequence| purge.below_sequence.is_none_or(|below| *sequence < below))
            .collect();
        gone.truncate(gone.len().saturating_sub(purge.keep as usize));
        gone
    }

    /// Whether what is found is what was promised; what is wrong with it otherwise.
    pub fn holds(&self, found: &BTreeMap<u64, Kept>) -> Result<(), String> {
        let is_found = |(sequence, _): &&(u64, Kept)| found.contains_key(sequence);
        let begun = self.staged.iter().rposition(|one| is_found(&one));
        let begun = begun.map_or(0, |last| last + 1);
        if let Some(group) = self.groups.iter().find(|group| group.contains(&begun)) {
            if group.start < begun {
                return Err(format!("{begun} under way are there, of a group {group:?}"));
            }
        }
        let refused = self.with_begun(begun, false).differs(found);
        let may_be_gone = begun == self.staged.len() || self.advancing.is_some();
        match refused {
            Err(_) if may_be_gone => self.with_begun(begun, true).differs(found),
            other => other,
        }
    }

    /// The promise as if the first `begun` messages under way had been acknowledged, and the removals or not.
    pub fn with_begun(&self, begun: usize, removals: bool) -> Self {
        let mut promise = self.clone();
        promise.staged.truncate(begun);
        promise.groups.clear();
        if !removals {
            promise.leaving.clear();
        }
        promise.acknowledge();
        promise
    }

    pub fn differs(&self, found: &BTreeMap<u64, Kept>) -> Result<(), String> {
        for (sequence, kept) in &self.kept {
            match found.get(sequence) {
                None => return Err(format!("{sequence} was promised and is gone")),
                Some(other) if other != kept => {
                    return Err(format!("{sequence} has other contents than promised"))
                }
                Some(_) => {}
            }
        }
        for (sequence, kept) in found {
            if !self.kept.contains_key(sequence) && self.trimmed.get(sequence) != Some(kept) {
                return Err(format!("{sequence} should not be there"));
            }
        }
        Ok(())
    }

    /// Opens a disk twice and compares it with what was promised. Returns what the first opening reported.
    pub fn check(
        &self,
        disk: &SimulatedDisk,
        options: &StoreOptions,
    ) -> Result<Vec<Finding>, String> {
        let options = StoreOptions {
            limits: self.limits,
            ..options.clone()
        };
        let folder = self.folder();
        let opened = open_in(disk, folder, &options);
        let store = opened.map_err(|error| format!("does not open: {error}"))?;
        let findings = store.take_findings();
        let found = contents(&store);
        self.holds(&found)
            .map_err(|what| format!("{what}; {findings:?}"))?;
        let state = store.messages().state();
        if !state.lost.is_empty() {
            return Err(format!("{:?} are reported lost; {findings:?}", state.lost));
        }
        let counted: u64 = store
            .messages()
            .subject_counts(b">")
            .iter()
            .map(|one| one.1)
            .sum();
        if state.messages != found.len() as u64 || counted != state.messages {
            return Err(format!("{state:?} counts {} messages wrongly", found.len()));
        }
        drop(store);

        let opened = open_in(disk, folder, &options);
        let store = opened.map_err(|error| format!("opens only once: {error}"))?;
        let again = store.take_findings();
        if !again.is_empty() {
            return Err(format!("is reported twice: {again:?}, first {findings:?}"));
        }
        if contents(&store) != found {
            return Err("the second opening finds something else".to_owned());
        }
        let sequence = self.check_goes_on(&store)?;
        if self.advancing.is_some() {
            drop(store);
            let store = open_in(disk, folder, &options).map_err(|error| error.to_string())?;
            if store
                .messages()
                .read(sequence)
                .is_ok_and(|found| found.is_none())
            {
                return Err(format!("{sequence} was stored where nothing is any more"));
            }
        }
        self.check_definition(disk)?;
        Ok(findings)
    }

    /// The next message gets a sequence that no acknowledged one ever had.
    pub fn check_goes_on(&self, store: &Store) -> Result<u64, String> {
        let next = message(u64::MAX / 3, 40);
        let appended = store.append(&next.as_new());
        let sequence = appended.map_err(|error| error.to_string())?.sequence;
        store.commit().map_err(|error| error.to_string())?;
        if sequence <= self.last_acknowledged {
            return Err(format!("{sequence} is given a second time"));
        }
        let read = store
            .messages()
            .read(sequence)
            .map_err(|error| error.to_string())?;
        match read {
            Some(message) if message.payload() == next.payload => Ok(sequence),
            _ => Err(format!("{sequence} was stored and cannot be read")),
        }
    }

    pub fn check_definition(&self, disk: &SimulatedDisk) -> Result<(), String> {
        let read = twin_file::read(disk, Path::new(self.folder()), DEFINITION, true);
        match read.map_err(|error| error.to_string())? {
            Twins::Missing if self.defined == 0 => Ok(()),
            Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin)
                if twin == definition(self.defined)
                    || (self.defining && twin == definition(self.defined + 1)) =>
            {
                Ok(())
            }
            other => Err(format!("definition {} is now {other:?}", self.defined)),
        }
    }

    /// Whether bytes that were overwritten are still somewhere.
    pub fn check_erased(&self, disk: &SimulatedDisk) -> Result<(), String> {
        let own = |path: &Path| path.starts_with(self.folder());
        for (path, bytes) in disk.files().into_iter().filter(|one| own(&one.0)) {
            for payload in &self.erased {
                let mark = &payload[..18.min(payload.len())];
                if bytes.windows(mark.len()).any(|some| some == mark) {
                    return Err(format!("{} still has an erased message", path.display()));
                }
            }
        }
        Ok(())
    }
}
