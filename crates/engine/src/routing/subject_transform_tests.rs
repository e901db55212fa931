//! Tests of subject transforms; what they expect was seen on nats-server 2.15.

use super::*;
use proptest::prelude::*;

fn mapped(source: &str, destination: &str, subject: &str) -> Option<String> {
    let transform = SubjectTransform::new(source, destination).unwrap();
    let mut out = b"before ".to_vec();
    let is_mapped = transform.apply(subject.as_bytes(), &mut Random::seeded(1), &mut out);
    let out = String::from_utf8(out).unwrap();
    let mapped = out.strip_prefix("before ").unwrap().to_owned();
    assert!(is_mapped || mapped.is_empty(), "{source} {destination}");
    is_mapped.then_some(mapped)
}

#[test]
fn functions_make_tokens_of_what_the_wildcards_matched() {
    for (source, destination, subject, expected) in [
        (
            "trx.*.*",
            "y.{{wildcard(2)}}.{{partition(5,1)}}.{{split(1,-)}}",
            "trx.a-b.q",
            "y.q.1.a.b",
        ),
        ("a.*", "b.$1.$x.$", "a.one", "b.one.$x.$"),
        ("a.*.>", "{{ Wildcard ( 1 ) }}.z.>", "a.b.c.d", "b.z.c.d"),
        ("", "b.>", "x.y", "b.x.y"),
        ("a", "b.{{partition(10)}}", "a", "b.0"),
        ("a", "{{partition(3,1,99)}}", "a", "1"),
        ("*", "{{partition(0)}}", "a", "0"),
        ("*.*", "$0.$-4.{{left(0,1)}}", "abc.d", "abc.abc.a"),
        ("*", "{{splitFromLeft(1,2)}}", "abcde", "ab.cde"),
        ("*", "{{SplitFromRight(1, 2)}}", "abcde", "abc.de"),
        ("*", "{{sliceFromLeft(1,2)}}", "abcde", "ab.cd.e"),
        ("*", "{{sliceFromLeft(1,2)}}", "abcd", "ab.cd"),
        ("*", "{{slicefromright(1,2)}}", "abcde", "a.bc.de"),
        ("*", "{{sliceFromRight(1,2)}}", "abcd", "ab.cd"),
        ("*", "{{left(1,2)}}.{{right(1,2)}}", "abcde", "ab.de"),
        ("*", "{{left(1,5)}}.{{right(1,-1)}}", "abcde", "abcde.abcde"),
        ("*", "{{split(1,-)}}", "-a--b-", "a.b"),
        ("*", "{{split(1,-)}}", "--a", ".a"),
        ("*", "{{split(1,)}}", "añb", "a.ñ.b"),
    ] {
        assert_eq!(
            mapped(source, destination, subject).as_deref(),
            Some(expected),
            "{source} to {destination}"
        );
    }
}

#[test]
fn other_subjects_are_left_alone() {
    assert_eq!(mapped("a.*", "b.$1", "a"), None);
    assert_eq!(mapped("a.*", "b.$1", "a.b.c"), None);
    assert_eq!(mapped("a.*", "b.$1", "x.b"), None);
    assert_eq!(mapped("a.>", "b.>", "a"), None);
    assert_eq!(mapped("a.>", "b.>", "a.x.*"), None);
    assert_eq!(mapped("a.>", "b.>", "a..x"), None);
}

#[test]
fn without_a_destination_the_source_is_a_filter() {
    assert_eq!(mapped("a.*", "", "a.b").as_deref(), Some("a.b"));
    assert_eq!(mapped("a.*", "", "b.a"), None);
    assert_eq!(mapped("", "", "b.a").as_deref(), Some("b.a"));
    assert_eq!(mapped(">", ">", "a.*").as_deref(), Some("a.*"));
}

#[test]
fn random_numbers_stay_below_their_bound() {
    let transform = SubjectTransform::new("a", "{{random(3)}}").unwrap();
    let mut random = Random::seeded(5);
    let mut out = Vec::new();

    for _ in 0..100 {
        assert!(transform.apply(b"a", &mut random, &mut out));
    }

    for digit in b"012" {
        assert!(out.contains(digit));
    }
    assert!(out.iter().all(|digit| (b'0'..=b'2').contains(digit)));
    assert_eq!(mapped("a", "{{random(0)}}", "a").as_deref(), Some("0"));
}

#[test]
fn what_is_no_transform_is_refused() {
    for (source, destination, error) in [
        ("a..b", "c", TransformError::InvalidSubject),
        ("a", "b..c", TransformError::InvalidSubject),
        ("a.>", "b", TransformError::InvalidSubject),
        ("a", "b.>", TransformError::InvalidSubject),
        ("a.*", "b.*", TransformError::InvalidSubject),
        ("a.>.b", "", TransformError::InvalidSubject),
        ("*", "{{nothing(1)}}", TransformError::UnknownFunction),
        ("*", "{{wildCard(1)}}", TransformError::UnknownFunction),
        ("*", "{{wildcard()}}", TransformError::NotEnoughArguments),
        ("*", "{{wildcard(1,2)}}", TransformError::TooManyArguments),
        ("*", "{{wildcard(x)}}", TransformError::InvalidArgument),
        ("*", "{{partition()}}", TransformError::InvalidArgument),
        (
            "*",
            "{{partition(2147483648)}}",
            TransformError::InvalidArgument,
        ),
        (
            "*",
            "{{left(1,-2147483649)}}",
            TransformError::InvalidArgument,
        ),
        ("*", "{{split(1)}}", TransformError::NotEnoughArguments),
        ("*", "{{split(1,-,-)}}", TransformError::TooManyArguments),
        ("*", "{{split(1,- )}}", TransformError::InvalidArgument),
        ("*", "{{random(1,2)}}", TransformError::NotEnoughArguments),
        ("*", "$2", TransformError::WildcardOutOfRange),
        (
            "*",
            "{{partition(3,1,2)}}",
            TransformError::WildcardOutOfRange,
        ),
        ("a", "{{left(1,1)}}", TransformError::WildcardOutOfRange),
    ] {
        assert_eq!(
            SubjectTransform::new(source, destination),
            Err(error),
            "{source} to {destination}"
        );
    }
}

#[test]
fn a_long_destination_is_refused_quickly() {
    for filler in ["{{left(", "{{left(\n", "{{  ", ")  ", "(", "\n"] {
        let token = format!("{{{{{}}}}}", filler.repeat(600_000 / filler.len()));

        assert_eq!(
            SubjectTransform::new("*", &token),
            Err(TransformError::UnknownFunction)
        );
    }
}

fn destination_token() -> impl Strategy<Value = String> {
    let function = "[wW]ildcard|[pP]artition|[sS]plit([fF]rom([lL]eft|[rR]ight))?|slice[fF]rom(Left|Right)|left|right|random";
    prop_oneof![
        "[a-z$*>{}()0-9, -]{0,6}",
        "\\$-?[0-3]",
        (
            function,
            "(-?[0-9]{1,11}|[a-z ,-]{0,3})(, ?[0-4-]{0,2}){0,3}"
        )
            .prop_map(|(name, arguments)| format!("{{{{{name}({arguments})}}}}")),
    ]
}

proptest! {
    #[test]
    fn anything_is_mapped_or_refused(
        source in prop_oneof!["[ab*>.]{0,9}", "\\PC{0,12}"],
        destination in prop_oneof![
            proptest::collection::vec(destination_token(), 1..4).prop_map(|tokens| tokens.join(".")),
            "\\PC{0,24}",
        ],
        subjects in proptest::collection::vec(
            prop_oneof![
                "[ab.]{0,9}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..12),
            ],
            1..6,
        ),
    ) {
        if let Ok(transform) = SubjectTransform::new(&source, &destination) {
            for subject in subjects {
                let mut out = vec![7];
                let is_mapped = transform.apply(&subject, &mut Random::seeded(3), &mut out);
                prop_assert!(is_mapped || out == [7]);
                prop_assert!(!is_mapped || matches(&transform.source, &subject));
            }
        }
    }
}
