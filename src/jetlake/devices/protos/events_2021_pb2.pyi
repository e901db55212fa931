from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[Status]
    OK: _ClassVar[Status]
    BAD_REQUEST: _ClassVar[Status]
    UNAUTHORIZED: _ClassVar[Status]
    FORBIDDEN: _ClassVar[Status]
    NOT_FOUND: _ClassVar[Status]
    UNAVAILABLE: _ClassVar[Status]
    NOT_IMPLEMENTED: _ClassVar[Status]
    ACCEPTED: _ClassVar[Status]
    ERROR: _ClassVar[Status]
    METHOD_NOT_ALLOWED: _ClassVar[Status]
    CREATED: _ClassVar[Status]

class ShadowSynchronization(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNSET: _ClassVar[ShadowSynchronization]
    ENABLED: _ClassVar[ShadowSynchronization]
    DISABLED: _ClassVar[ShadowSynchronization]
UNKNOWN: Status
OK: Status
BAD_REQUEST: Status
UNAUTHORIZED: Status
FORBIDDEN: Status
NOT_FOUND: Status
UNAVAILABLE: Status
NOT_IMPLEMENTED: Status
ACCEPTED: Status
ERROR: Status
METHOD_NOT_ALLOWED: Status
CREATED: Status
UNSET: ShadowSynchronization
ENABLED: ShadowSynchronization
DISABLED: ShadowSynchronization

class EventMetadata(_message.Message):
    __slots__ = ("version", "timestamp", "connection_id", "sequence")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    version: int
    timestamp: int
    connection_id: str
    sequence: int
    def __init__(self, version: _Optional[int] = ..., timestamp: _Optional[int] = ..., connection_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class AuditContext(_message.Message):
    __slots__ = ("user_id", "correlation_id")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    correlation_id: str
    def __init__(self, user_id: _Optional[str] = ..., correlation_id: _Optional[str] = ...) -> None: ...

class ResourceId(_message.Message):
    __slots__ = ("device_id", "href")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    HREF_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    href: str
    def __init__(self, device_id: _Optional[str] = ..., href: _Optional[str] = ...) -> None: ...

class Content(_message.Message):
    __slots__ = ("data", "content_type", "coap_content_format")
    DATA_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    COAP_CONTENT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    content_type: str
    coap_content_format: int
    def __init__(self, data: _Optional[bytes] = ..., content_type: _Optional[str] = ..., coap_content_format: _Optional[int] = ...) -> None: ...

class Policies(_message.Message):
    __slots__ = ("bit_flags",)
    BIT_FLAGS_FIELD_NUMBER: _ClassVar[int]
    bit_flags: int
    def __init__(self, bit_flags: _Optional[int] = ...) -> None: ...

class EndpointInformation(_message.Message):
    __slots__ = ("endpoint", "priority")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    priority: int
    def __init__(self, endpoint: _Optional[str] = ..., priority: _Optional[int] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("href", "device_id", "resource_types", "interfaces", "anchor", "title", "supported_content_types", "valid_until", "policies", "endpoint_informations")
    HREF_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    INTERFACES_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_CONTENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_INFORMATIONS_FIELD_NUMBER: _ClassVar[int]
    href: str
    device_id: str
    resource_types: _containers.RepeatedScalarFieldContainer[str]
    interfaces: _containers.RepeatedScalarFieldContainer[str]
    anchor: str
    title: str
    supported_content_types: _containers.RepeatedScalarFieldContainer[str]
    valid_until: int
    policies: Policies
    endpoint_informations: _containers.RepeatedCompositeFieldContainer[EndpointInformation]
    def __init__(self, href: _Optional[str] = ..., device_id: _Optional[str] = ..., resource_types: _Optional[_Iterable[str]] = ..., interfaces: _Optional[_Iterable[str]] = ..., anchor: _Optional[str] = ..., title: _Optional[str] = ..., supported_content_types: _Optional[_Iterable[str]] = ..., valid_until: _Optional[int] = ..., policies: _Optional[_Union[Policies, _Mapping]] = ..., endpoint_informations: _Optional[_Iterable[_Union[EndpointInformation, _Mapping]]] = ...) -> None: ...

class ConnectionStatus(_message.Message):
    __slots__ = ("value", "valid_until")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OFFLINE: _ClassVar[ConnectionStatus.Status]
        ONLINE: _ClassVar[ConnectionStatus.Status]
    OFFLINE: ConnectionStatus.Status
    ONLINE: ConnectionStatus.Status
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    value: ConnectionStatus.Status
    valid_until: int
    def __init__(self, value: _Optional[_Union[ConnectionStatus.Status, str]] = ..., valid_until: _Optional[int] = ...) -> None: ...

class ResourceLinksPublished(_message.Message):
    __slots__ = ("resources", "device_id", "audit_context", "event_metadata")
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[Resource]
    device_id: str
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resources: _Optional[_Iterable[_Union[Resource, _Mapping]]] = ..., device_id: _Optional[str] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceLinksUnpublished(_message.Message):
    __slots__ = ("hrefs", "device_id", "audit_context", "event_metadata")
    HREFS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    hrefs: _containers.RepeatedScalarFieldContainer[str]
    device_id: str
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, hrefs: _Optional[_Iterable[str]] = ..., device_id: _Optional[str] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceLinksSnapshotTaken(_message.Message):
    __slots__ = ("resources", "device_id", "event_metadata")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Resource
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.MessageMap[str, Resource]
    device_id: str
    event_metadata: EventMetadata
    def __init__(self, resources: _Optional[_Mapping[str, Resource]] = ..., device_id: _Optional[str] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceChanged(_message.Message):
    __slots__ = ("resource_id", "content", "audit_context", "event_metadata", "status")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    status: Status
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ..., status: _Optional[_Union[Status, str]] = ...) -> None: ...

class ResourceUpdatePending(_message.Message):
    __slots__ = ("resource_id", "resource_interface", "content", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_INTERFACE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    resource_interface: str
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., resource_interface: _Optional[str] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceUpdated(_message.Message):
    __slots__ = ("resource_id", "status", "content", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    status: Status
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., status: _Optional[_Union[Status, str]] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceRetrievePending(_message.Message):
    __slots__ = ("resource_id", "resource_interface", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_INTERFACE_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    resource_interface: str
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., resource_interface: _Optional[str] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceRetrieved(_message.Message):
    __slots__ = ("resource_id", "status", "content", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    status: Status
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., status: _Optional[_Union[Status, str]] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceDeletePending(_message.Message):
    __slots__ = ("resource_id", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceDeleted(_message.Message):
    __slots__ = ("resource_id", "status", "content", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    status: Status
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., status: _Optional[_Union[Status, str]] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceCreatePending(_message.Message):
    __slots__ = ("resource_id", "content", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceCreated(_message.Message):
    __slots__ = ("resource_id", "status", "content", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    status: Status
    content: Content
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., status: _Optional[_Union[Status, str]] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class ResourceStateSnapshotTaken(_message.Message):
    __slots__ = ("resource_id", "latest_resource_change", "resource_create_pendings", "resource_retrieve_pendings", "resource_update_pendings", "resource_delete_pendings", "audit_context", "event_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    LATEST_RESOURCE_CHANGE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_CREATE_PENDINGS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_RETRIEVE_PENDINGS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_UPDATE_PENDINGS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_DELETE_PENDINGS_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: ResourceId
    latest_resource_change: ResourceChanged
    resource_create_pendings: _containers.RepeatedCompositeFieldContainer[ResourceCreatePending]
    resource_retrieve_pendings: _containers.RepeatedCompositeFieldContainer[ResourceRetrievePending]
    resource_update_pendings: _containers.RepeatedCompositeFieldContainer[ResourceUpdatePending]
    resource_delete_pendings: _containers.RepeatedCompositeFieldContainer[ResourceDeletePending]
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, resource_id: _Optional[_Union[ResourceId, _Mapping]] = ..., latest_resource_change: _Optional[_Union[ResourceChanged, _Mapping]] = ..., resource_create_pendings: _Optional[_Iterable[_Union[ResourceCreatePending, _Mapping]]] = ..., resource_retrieve_pendings: _Optional[_Iterable[_Union[ResourceRetrievePending, _Mapping]]] = ..., resource_update_pendings: _Optional[_Iterable[_Union[ResourceUpdatePending, _Mapping]]] = ..., resource_delete_pendings: _Optional[_Iterable[_Union[ResourceDeletePending, _Mapping]]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class DeviceMetadataUpdated(_message.Message):
    __slots__ = ("device_id", "status", "shadow_synchronization", "audit_context", "event_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SHADOW_SYNCHRONIZATION_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    status: ConnectionStatus
    shadow_synchronization: ShadowSynchronization
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, device_id: _Optional[str] = ..., status: _Optional[_Union[ConnectionStatus, _Mapping]] = ..., shadow_synchronization: _Optional[_Union[ShadowSynchronization, str]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class DeviceMetadataUpdatePending(_message.Message):
    __slots__ = ("device_id", "shadow_synchronization", "audit_context", "event_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SHADOW_SYNCHRONIZATION_FIELD_NUMBER: _ClassVar[int]
    AUDIT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    shadow_synchronization: ShadowSynchronization
    audit_context: AuditContext
    event_metadata: EventMetadata
    def __init__(self, device_id: _Optional[str] = ..., shadow_synchronization: _Optional[_Union[ShadowSynchronization, str]] = ..., audit_context: _Optional[_Union[AuditContext, _Mapping]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...

class DeviceMetadataSnapshotTaken(_message.Message):
    __slots__ = ("device_id", "device_metadata_updated", "update_pendings", "event_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_METADATA_UPDATED_FIELD_NUMBER: _ClassVar[int]
    UPDATE_PENDINGS_FIELD_NUMBER: _ClassVar[int]
    EVENT_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    device_metadata_updated: DeviceMetadataUpdated
    update_pendings: _containers.RepeatedCompositeFieldContainer[DeviceMetadataUpdatePending]
    event_metadata: EventMetadata
    def __init__(self, device_id: _Optional[str] = ..., device_metadata_updated: _Optional[_Union[DeviceMetadataUpdated, _Mapping]] = ..., update_pendings: _Optional[_Iterable[_Union[DeviceMetadataUpdatePending, _Mapping]]] = ..., event_metadata: _Optional[_Union[EventMetadata, _Mapping]] = ...) -> None: ...
