//! Which options make a server, and what is said about those that do not.

use super::*;
use crate::transport::tls::test_certificates::Authority;

fn refusal(options: &TlsOptions) -> String {
    match TlsSettings::new(options) {
        Err(EngineError::Options(reason)) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn a_certificate_and_its_key_are_accepted() {
    let mut options = Authority::new().options();
    assert!(TlsSettings::new(&options).is_ok());

    options.verify = true;
    options.min_version = TlsVersion::Tls13;
    options.pinned_certificates = vec!["0aF".repeat(21) + "f"];

    let settings = TlsSettings::new(&options).unwrap();
    assert_eq!(settings.pinned.len(), 1);
    assert_eq!(settings.pinned[0][0], 0x0a);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason_and_without_the_key() {
    let authority = Authority::new();
    let good = authority.options();
    let key_line = good.key_pem.lines().nth(1).unwrap().to_owned();
    type Change = fn(&mut TlsOptions, &Authority);
    let cases: [(&str, Change); 9] = [
        ("cert_file holds no certificate", |options, _| {
            options.certificate_pem = "nothing".to_owned();
        }),
        ("cert_file cannot be read as PEM", |options, _| {
            options.certificate_pem = options.certificate_pem.replace("-----END", "");
        }),
        ("key_file holds no private key", |options, _| {
            options.key_pem = options.certificate_pem.clone();
        }),
        ("key_file cannot be read as PEM", |options, _| {
            options.key_pem = options.key_pem.replacen('M', "!", 1);
        }),
        ("key_file is not the key", |options, authority| {
            options.key_pem = authority.certify("other").key_pem;
        }),
        ("verify needs ca_file", |options, _| {
            options.verify = true;
            options.ca_pem = None;
        }),
        ("ca_file holds no certificate", |options, _| {
            options.verify = true;
            options.ca_pem = Some(String::new());
        }),
        ("timeout must be longer", |options, _| {
            options.timeout_ms = 0
        }),
        ("pinned_certs", |options, _| {
            options.pinned_certificates = vec!["abc".to_owned()];
        }),
    ];
    for (expected, change) in cases {
        let mut options = good.clone();
        change(&mut options, &authority);

        let reason = refusal(&options);

        assert!(reason.contains(expected), "{reason:?} lacks {expected:?}");
        assert!(!reason.contains(&key_line), "{reason}");
    }
    assert!(!format!("{good:?}").contains(&key_line));
}

#[test]
fn pinned_digits_outside_of_ascii_are_refused() {
    let mut options = Authority::new().options();
    options.pinned_certificates = vec!["é".repeat(32)];

    assert!(refusal(&options).contains("pinned_certs"));
}

#[test]
fn cipher_suites_are_chosen_by_name() {
    let names = |list: &[&str]| {
        let list: Vec<String> = list.iter().map(|name| (*name).to_owned()).collect();
        select_cipher_suites(&list).map(|suites| {
            suites
                .iter()
                .map(|suite| name_of(suite.suite()))
                .collect::<Vec<_>>()
        })
    };

    assert_eq!(names(&[]).unwrap().len(), 9);
    // A list for TLS 1.2 leaves TLS 1.3 as it is.
    let tls12 = names(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]).unwrap();
    assert_eq!(tls12.len(), 4);
    assert!(tls12.contains(&"TLS_CHACHA20_POLY1305_SHA256".to_owned()));
    assert_eq!(
        names(&["TLS_AES_256_GCM_SHA384"]).unwrap(),
        ["TLS_AES_256_GCM_SHA384"]
    );
    assert!(names(&["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"])
        .unwrap()
        .contains(&"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256".to_owned()));
    let Err(EngineError::Options(reason)) = names(&["TLS_RSA_WITH_AES_128_CBC_SHA"]) else {
        panic!()
    };
    assert!(
        reason.contains("TLS_RSA_WITH_AES_128_CBC_SHA")
            && reason.contains("TLS_AES_128_GCM_SHA256")
    );
}

#[test]
fn options_are_read_from_json_and_unknown_keys_are_refused() {
    let options: TlsOptions =
        serde_json::from_str(r#"{"certificate_pem":"a","key_pem":"b","timeout_ms":5}"#).unwrap();
    assert_eq!(options.min_version, TlsVersion::Tls12);
    assert!(!options.verify && options.handshake_first_ms.is_none());

    for wrong in [
        r#"{"certificate_pem":"a","key_pem":"b","timeout_ms":5,"insecure":true}"#,
        r#"{"certificate_pem":"a","key_pem":"b","timeout_ms":5,"min_version":"1.1"}"#,
        r#"{"certificate_pem":"a","timeout_ms":5}"#,
    ] {
        assert!(
            serde_json::from_str::<TlsOptions>(wrong).is_err(),
            "{wrong}"
        );
    }
}
