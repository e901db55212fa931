//! What clients and Python ask of bulk readers, writers and scans, as JSON: anything is taken or refused.

#![no_main]

use jetlake_engine::bulk::files::StoreReader;
use jetlake_engine::bulk::publishes::PublishWriter;
use jetlake_engine::bulk::rows::RowReader;
use jetlake_engine::stream::read::scan::ScanRequest;
use jetlake_engine::stream::read::scans::PlanRequest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(mut reader) = RowReader::new(bytes) {
        assert!(!reader.to_send().is_empty() || reader.batches().rows == 0);
    }
    let _ = StoreReader::new(bytes);
    let _ = PublishWriter::new(bytes).map(|mut writer| writer.to_send());
    let _ = serde_json::from_slice::<ScanRequest>(bytes);
    let _ = serde_json::from_slice::<PlanRequest>(bytes);
});
