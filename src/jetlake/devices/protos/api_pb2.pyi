from jetlake.devices.protos import events_2025_pb2 as _events_2025_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PublishResourceLinksRequest(_message.Message):
    __slots__ = ("device_id", "resources", "command_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    resources: _containers.RepeatedCompositeFieldContainer[_events_2025_pb2.Resource]
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, device_id: _Optional[str] = ..., resources: _Optional[_Iterable[_Union[_events_2025_pb2.Resource, _Mapping]]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class UnpublishResourceLinksRequest(_message.Message):
    __slots__ = ("device_id", "hrefs", "command_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    HREFS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    hrefs: _containers.RepeatedScalarFieldContainer[str]
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, device_id: _Optional[str] = ..., hrefs: _Optional[_Iterable[str]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class NotifyResourceChangedRequest(_message.Message):
    __slots__ = ("resource_id", "content", "status", "etag", "resource_types", "command_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: _events_2025_pb2.ResourceId
    content: _events_2025_pb2.Content
    status: _events_2025_pb2.Status
    etag: bytes
    resource_types: _containers.RepeatedScalarFieldContainer[str]
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, resource_id: _Optional[_Union[_events_2025_pb2.ResourceId, _Mapping]] = ..., content: _Optional[_Union[_events_2025_pb2.Content, _Mapping]] = ..., status: _Optional[_Union[_events_2025_pb2.Status, str]] = ..., etag: _Optional[bytes] = ..., resource_types: _Optional[_Iterable[str]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class BatchNotifyResourceChangedRequest(_message.Message):
    __slots__ = ("batch",)
    BATCH_FIELD_NUMBER: _ClassVar[int]
    batch: _containers.RepeatedCompositeFieldContainer[NotifyResourceChangedRequest]
    def __init__(self, batch: _Optional[_Iterable[_Union[NotifyResourceChangedRequest, _Mapping]]] = ...) -> None: ...

class ResourceCommandRequest(_message.Message):
    __slots__ = ("resource_id", "correlation_id", "content", "resource_interface", "time_to_live", "etag", "command_metadata", "wait_for_confirmation")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_INTERFACE_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_LIVE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_CONFIRMATION_FIELD_NUMBER: _ClassVar[int]
    resource_id: _events_2025_pb2.ResourceId
    correlation_id: str
    content: _events_2025_pb2.Content
    resource_interface: str
    time_to_live: int
    etag: _containers.RepeatedScalarFieldContainer[bytes]
    command_metadata: _events_2025_pb2.CommandMetadata
    wait_for_confirmation: int
    def __init__(self, resource_id: _Optional[_Union[_events_2025_pb2.ResourceId, _Mapping]] = ..., correlation_id: _Optional[str] = ..., content: _Optional[_Union[_events_2025_pb2.Content, _Mapping]] = ..., resource_interface: _Optional[str] = ..., time_to_live: _Optional[int] = ..., etag: _Optional[_Iterable[bytes]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ..., wait_for_confirmation: _Optional[int] = ...) -> None: ...

class ResourceConfirmRequest(_message.Message):
    __slots__ = ("resource_id", "correlation_id", "status", "content", "etag", "command_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: _events_2025_pb2.ResourceId
    correlation_id: str
    status: _events_2025_pb2.Status
    content: _events_2025_pb2.Content
    etag: bytes
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, resource_id: _Optional[_Union[_events_2025_pb2.ResourceId, _Mapping]] = ..., correlation_id: _Optional[str] = ..., status: _Optional[_Union[_events_2025_pb2.Status, str]] = ..., content: _Optional[_Union[_events_2025_pb2.Content, _Mapping]] = ..., etag: _Optional[bytes] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class UpdateDeviceMetadataRequest(_message.Message):
    __slots__ = ("device_id", "correlation_id", "connection", "twin_synchronization", "twin_enabled", "twin_force_synchronization", "time_to_live", "command_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    TWIN_SYNCHRONIZATION_FIELD_NUMBER: _ClassVar[int]
    TWIN_ENABLED_FIELD_NUMBER: _ClassVar[int]
    TWIN_FORCE_SYNCHRONIZATION_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_LIVE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    correlation_id: str
    connection: _events_2025_pb2.Connection
    twin_synchronization: _events_2025_pb2.TwinSynchronization
    twin_enabled: bool
    twin_force_synchronization: bool
    time_to_live: int
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, device_id: _Optional[str] = ..., correlation_id: _Optional[str] = ..., connection: _Optional[_Union[_events_2025_pb2.Connection, _Mapping]] = ..., twin_synchronization: _Optional[_Union[_events_2025_pb2.TwinSynchronization, _Mapping]] = ..., twin_enabled: _Optional[bool] = ..., twin_force_synchronization: _Optional[bool] = ..., time_to_live: _Optional[int] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class ConfirmDeviceMetadataUpdateRequest(_message.Message):
    __slots__ = ("device_id", "correlation_id", "status", "command_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    correlation_id: str
    status: _events_2025_pb2.Status
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, device_id: _Optional[str] = ..., correlation_id: _Optional[str] = ..., status: _Optional[_Union[_events_2025_pb2.Status, str]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class CancelPendingCommandsRequest(_message.Message):
    __slots__ = ("resource_id", "correlation_id_filter", "command_metadata")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    resource_id: _events_2025_pb2.ResourceId
    correlation_id_filter: _containers.RepeatedScalarFieldContainer[str]
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, resource_id: _Optional[_Union[_events_2025_pb2.ResourceId, _Mapping]] = ..., correlation_id_filter: _Optional[_Iterable[str]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class CancelPendingMetadataUpdatesRequest(_message.Message):
    __slots__ = ("device_id", "correlation_id_filter", "command_metadata")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_METADATA_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    correlation_id_filter: _containers.RepeatedScalarFieldContainer[str]
    command_metadata: _events_2025_pb2.CommandMetadata
    def __init__(self, device_id: _Optional[str] = ..., correlation_id_filter: _Optional[_Iterable[str]] = ..., command_metadata: _Optional[_Union[_events_2025_pb2.CommandMetadata, _Mapping]] = ...) -> None: ...

class DeleteDevicesRequest(_message.Message):
    __slots__ = ("device_id_filter",)
    DEVICE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    device_id_filter: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, device_id_filter: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteDevicesResponse(_message.Message):
    __slots__ = ("device_ids",)
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    device_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, device_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CommandResponse(_message.Message):
    __slots__ = ("events", "valid_until", "correlation_id", "confirmation")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIRMATION_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[GetEventsResponse]
    valid_until: int
    correlation_id: str
    confirmation: GetEventsResponse
    def __init__(self, events: _Optional[_Iterable[_Union[GetEventsResponse, _Mapping]]] = ..., valid_until: _Optional[int] = ..., correlation_id: _Optional[str] = ..., confirmation: _Optional[_Union[GetEventsResponse, _Mapping]] = ...) -> None: ...

class ResourceIdFilter(_message.Message):
    __slots__ = ("resource_id", "etag")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    resource_id: _events_2025_pb2.ResourceId
    etag: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, resource_id: _Optional[_Union[_events_2025_pb2.ResourceId, _Mapping]] = ..., etag: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GetEventsRequest(_message.Message):
    __slots__ = ("device_id_filter", "http_resource_id_filter", "timestamp_filter", "resource_id_filter")
    DEVICE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    HTTP_RESOURCE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FILTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    device_id_filter: _containers.RepeatedScalarFieldContainer[str]
    http_resource_id_filter: _containers.RepeatedScalarFieldContainer[str]
    timestamp_filter: int
    resource_id_filter: _containers.RepeatedCompositeFieldContainer[ResourceIdFilter]
    def __init__(self, device_id_filter: _Optional[_Iterable[str]] = ..., http_resource_id_filter: _Optional[_Iterable[str]] = ..., timestamp_filter: _Optional[int] = ..., resource_id_filter: _Optional[_Iterable[_Union[ResourceIdFilter, _Mapping]]] = ...) -> None: ...

class GetEventsResponse(_message.Message):
    __slots__ = ("resource_links_published", "resource_links_unpublished", "resource_links_snapshot_taken", "resource_changed", "resource_update_pending", "resource_updated", "resource_retrieve_pending", "resource_retrieved", "resource_delete_pending", "resource_deleted", "resource_create_pending", "resource_created", "resource_state_snapshot_taken", "device_metadata_update_pending", "device_metadata_updated", "device_metadata_snapshot_taken")
    RESOURCE_LINKS_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_LINKS_UNPUBLISHED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_LINKS_SNAPSHOT_TAKEN_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_UPDATE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_UPDATED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_RETRIEVE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_RETRIEVED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_DELETE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_DELETED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_CREATE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_CREATED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_STATE_SNAPSHOT_TAKEN_FIELD_NUMBER: _ClassVar[int]
    DEVICE_METADATA_UPDATE_PENDING_FIELD_NUMBER: _ClassVar[int]
    DEVICE_METADATA_UPDATED_FIELD_NUMBER: _ClassVar[int]
    DEVICE_METADATA_SNAPSHOT_TAKEN_FIELD_NUMBER: _ClassVar[int]
    resource_links_published: _events_2025_pb2.ResourceLinksPublished
    resource_links_unpublished: _events_2025_pb2.ResourceLinksUnpublished
    resource_links_snapshot_taken: _events_2025_pb2.ResourceLinksSnapshotTaken
    resource_changed: _events_2025_pb2.ResourceChanged
    resource_update_pending: _events_2025_pb2.ResourceUpdatePending
    resource_updated: _events_2025_pb2.ResourceUpdated
    resource_retrieve_pending: _events_2025_pb2.ResourceRetrievePending
    resource_retrieved: _events_2025_pb2.ResourceRetrieved
    resource_delete_pending: _events_2025_pb2.ResourceDeletePending
    resource_deleted: _events_2025_pb2.ResourceDeleted
    resource_create_pending: _events_2025_pb2.ResourceCreatePending
    resource_created: _events_2025_pb2.ResourceCreated
    resource_state_snapshot_taken: _events_2025_pb2.ResourceStateSnapshotTaken
    device_metadata_update_pending: _events_2025_pb2.DeviceMetadataUpdatePending
    device_metadata_updated: _events_2025_pb2.DeviceMetadataUpdated
    device_metadata_snapshot_taken: _events_2025_pb2.DeviceMetadataSnapshotTaken
    def __init__(self, resource_links_published: _Optional[_Union[_events_2025_pb2.ResourceLinksPublished, _Mapping]] = ..., resource_links_unpublished: _Optional[_Union[_events_2025_pb2.ResourceLinksUnpublished, _Mapping]] = ..., resource_links_snapshot_taken: _Optional[_Union[_events_2025_pb2.ResourceLinksSnapshotTaken, _Mapping]] = ..., resource_changed: _Optional[_Union[_events_2025_pb2.ResourceChanged, _Mapping]] = ..., resource_update_pending: _Optional[_Union[_events_2025_pb2.ResourceUpdatePending, _Mapping]] = ..., resource_updated: _Optional[_Union[_events_2025_pb2.ResourceUpdated, _Mapping]] = ..., resource_retrieve_pending: _Optional[_Union[_events_2025_pb2.ResourceRetrievePending, _Mapping]] = ..., resource_retrieved: _Optional[_Union[_events_2025_pb2.ResourceRetrieved, _Mapping]] = ..., resource_delete_pending: _Optional[_Union[_events_2025_pb2.ResourceDeletePending, _Mapping]] = ..., resource_deleted: _Optional[_Union[_events_2025_pb2.ResourceDeleted, _Mapping]] = ..., resource_create_pending: _Optional[_Union[_events_2025_pb2.ResourceCreatePending, _Mapping]] = ..., resource_created: _Optional[_Union[_events_2025_pb2.ResourceCreated, _Mapping]] = ..., resource_state_snapshot_taken: _Optional[_Union[_events_2025_pb2.ResourceStateSnapshotTaken, _Mapping]] = ..., device_metadata_update_pending: _Optional[_Union[_events_2025_pb2.DeviceMetadataUpdatePending, _Mapping]] = ..., device_metadata_updated: _Optional[_Union[_events_2025_pb2.DeviceMetadataUpdated, _Mapping]] = ..., device_metadata_snapshot_taken: _Optional[_Union[_events_2025_pb2.DeviceMetadataSnapshotTaken, _Mapping]] = ...) -> None: ...

class SubscribeToEventsRequest(_message.Message):
    __slots__ = ("create_subscription", "cancel_subscription", "correlation_id")
    class CreateSubscription(_message.Message):
        __slots__ = ("event_filter", "device_id_filter", "http_resource_id_filter", "href_filter", "resource_id_filter")
        class Event(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            REGISTERED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            UNREGISTERED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            DEVICE_METADATA_UPDATED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            DEVICE_METADATA_UPDATE_PENDING: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_PUBLISHED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_UNPUBLISHED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_UPDATE_PENDING: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_UPDATED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_RETRIEVE_PENDING: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_RETRIEVED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_DELETE_PENDING: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_DELETED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_CREATE_PENDING: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_CREATED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
            RESOURCE_CHANGED: _ClassVar[SubscribeToEventsRequest.CreateSubscription.Event]
        REGISTERED: SubscribeToEventsRequest.CreateSubscription.Event
        UNREGISTERED: SubscribeToEventsRequest.CreateSubscription.Event
        DEVICE_METADATA_UPDATED: SubscribeToEventsRequest.CreateSubscription.Event
        DEVICE_METADATA_UPDATE_PENDING: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_PUBLISHED: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_UNPUBLISHED: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_UPDATE_PENDING: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_UPDATED: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_RETRIEVE_PENDING: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_RETRIEVED: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_DELETE_PENDING: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_DELETED: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_CREATE_PENDING: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_CREATED: SubscribeToEventsRequest.CreateSubscription.Event
        RESOURCE_CHANGED: SubscribeToEventsRequest.CreateSubscription.Event
        EVENT_FILTER_FIELD_NUMBER: _ClassVar[int]
        DEVICE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
        HTTP_RESOURCE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
        HREF_FILTER_FIELD_NUMBER: _ClassVar[int]
        RESOURCE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
        event_filter: _containers.RepeatedScalarFieldContainer[SubscribeToEventsRequest.CreateSubscription.Event]
        device_id_filter: _containers.RepeatedScalarFieldContainer[str]
        http_resource_id_filter: _containers.RepeatedScalarFieldContainer[str]
        href_filter: _containers.RepeatedScalarFieldContainer[str]
        resource_id_filter: _containers.RepeatedCompositeFieldContainer[ResourceIdFilter]
        def __init__(self, event_filter: _Optional[_Iterable[_Union[SubscribeToEventsRequest.CreateSubscription.Event, str]]] = ..., device_id_filter: _Optional[_Iterable[str]] = ..., http_resource_id_filter: _Optional[_Iterable[str]] = ..., href_filter: _Optional[_Iterable[str]] = ..., resource_id_filter: _Optional[_Iterable[_Union[ResourceIdFilter, _Mapping]]] = ...) -> None: ...
    class CancelSubscription(_message.Message):
        __slots__ = ("subscription_id",)
        SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
        subscription_id: str
        def __init__(self, subscription_id: _Optional[str] = ...) -> None: ...
    CREATE_SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CANCEL_SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    create_subscription: SubscribeToEventsRequest.CreateSubscription
    cancel_subscription: SubscribeToEventsRequest.CancelSubscription
    correlation_id: str
    def __init__(self, create_subscription: _Optional[_Union[SubscribeToEventsRequest.CreateSubscription, _Mapping]] = ..., cancel_subscription: _Optional[_Union[SubscribeToEventsRequest.CancelSubscription, _Mapping]] = ..., correlation_id: _Optional[str] = ...) -> None: ...

class SubscriptionEvent(_message.Message):
    __slots__ = ("subscription_id", "correlation_id", "operation_processed", "subscription_canceled", "event", "dropped")
    class OperationProcessed(_message.Message):
        __slots__ = ("ok", "message")
        OK_FIELD_NUMBER: _ClassVar[int]
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        ok: bool
        message: str
        def __init__(self, ok: _Optional[bool] = ..., message: _Optional[str] = ...) -> None: ...
    class SubscriptionCanceled(_message.Message):
        __slots__ = ("reason",)
        REASON_FIELD_NUMBER: _ClassVar[int]
        reason: str
        def __init__(self, reason: _Optional[str] = ...) -> None: ...
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATION_PROCESSED_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_CANCELED_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    subscription_id: str
    correlation_id: str
    operation_processed: SubscriptionEvent.OperationProcessed
    subscription_canceled: SubscriptionEvent.SubscriptionCanceled
    event: GetEventsResponse
    dropped: int
    def __init__(self, subscription_id: _Optional[str] = ..., correlation_id: _Optional[str] = ..., operation_processed: _Optional[_Union[SubscriptionEvent.OperationProcessed, _Mapping]] = ..., subscription_canceled: _Optional[_Union[SubscriptionEvent.SubscriptionCanceled, _Mapping]] = ..., event: _Optional[_Union[GetEventsResponse, _Mapping]] = ..., dropped: _Optional[int] = ...) -> None: ...

class GetDevicesRequest(_message.Message):
    __slots__ = ("device_id_filter", "status_filter", "type_filter")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ONLINE: _ClassVar[GetDevicesRequest.Status]
        OFFLINE: _ClassVar[GetDevicesRequest.Status]
    ONLINE: GetDevicesRequest.Status
    OFFLINE: GetDevicesRequest.Status
    DEVICE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FILTER_FIELD_NUMBER: _ClassVar[int]
    device_id_filter: _containers.RepeatedScalarFieldContainer[str]
    status_filter: _containers.RepeatedScalarFieldContainer[GetDevicesRequest.Status]
    type_filter: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, device_id_filter: _Optional[_Iterable[str]] = ..., status_filter: _Optional[_Iterable[_Union[GetDevicesRequest.Status, str]]] = ..., type_filter: _Optional[_Iterable[str]] = ...) -> None: ...

class GetStateRequest(_message.Message):
    __slots__ = ("device_id_filter", "http_resource_id_filter", "resource_id_filter", "type_filter")
    DEVICE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    HTTP_RESOURCE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FILTER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FILTER_FIELD_NUMBER: _ClassVar[int]
    device_id_filter: _containers.RepeatedScalarFieldContainer[str]
    http_resource_id_filter: _containers.RepeatedScalarFieldContainer[str]
    resource_id_filter: _containers.RepeatedCompositeFieldContainer[ResourceIdFilter]
    type_filter: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, device_id_filter: _Optional[_Iterable[str]] = ..., http_resource_id_filter: _Optional[_Iterable[str]] = ..., resource_id_filter: _Optional[_Iterable[_Union[ResourceIdFilter, _Mapping]]] = ..., type_filter: _Optional[_Iterable[str]] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("id", "name", "types", "metadata", "resource_count", "pending_command_count")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_COMMAND_COUNT_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    types: _containers.RepeatedScalarFieldContainer[str]
    metadata: _events_2025_pb2.DeviceMetadataUpdated
    resource_count: int
    pending_command_count: int
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., types: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_events_2025_pb2.DeviceMetadataUpdated, _Mapping]] = ..., resource_count: _Optional[int] = ..., pending_command_count: _Optional[int] = ...) -> None: ...

class ResourceState(_message.Message):
    __slots__ = ("data", "types")
    DATA_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    data: _events_2025_pb2.ResourceChanged
    types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, data: _Optional[_Union[_events_2025_pb2.ResourceChanged, _Mapping]] = ..., types: _Optional[_Iterable[str]] = ...) -> None: ...

class PendingCommand(_message.Message):
    __slots__ = ("resource_create_pending", "resource_retrieve_pending", "resource_update_pending", "resource_delete_pending", "device_metadata_update_pending")
    RESOURCE_CREATE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_RETRIEVE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_UPDATE_PENDING_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_DELETE_PENDING_FIELD_NUMBER: _ClassVar[int]
    DEVICE_METADATA_UPDATE_PENDING_FIELD_NUMBER: _ClassVar[int]
    resource_create_pending: _events_2025_pb2.ResourceCreatePending
    resource_retrieve_pending: _events_2025_pb2.ResourceRetrievePending
    resource_update_pending: _events_2025_pb2.ResourceUpdatePending
    resource_delete_pending: _events_2025_pb2.ResourceDeletePending
    device_metadata_update_pending: _events_2025_pb2.DeviceMetadataUpdatePending
    def __init__(self, resource_create_pending: _Optional[_Union[_events_2025_pb2.ResourceCreatePending, _Mapping]] = ..., resource_retrieve_pending: _Optional[_Union[_events_2025_pb2.ResourceRetrievePending, _Mapping]] = ..., resource_update_pending: _Optional[_Union[_events_2025_pb2.ResourceUpdatePending, _Mapping]] = ..., resource_delete_pending: _Optional[_Union[_events_2025_pb2.ResourceDeletePending, _Mapping]] = ..., device_metadata_update_pending: _Optional[_Union[_events_2025_pb2.DeviceMetadataUpdatePending, _Mapping]] = ...) -> None: ...
