/** `svc/plugin`: the API for authors of plugins; docs/plugins.md is its manual. At most 60 values, each in this entry alone. */

export { systemClock, turn, within } from './clock.js'
export type { Awaitable, Clock, Ids, Scope, Timer } from './contract/basics.js'
export { iso } from './contract/basics.js'
export type { Config, SettingsApi } from './contract/config.js'
export type { ErrorEntry, ErrorTable, FaultMore } from './contract/errors.js'
export { defineErrors, errorsOf, Fault, faultOf, KernelErrors, messageOf } from './contract/errors.js'
export type {
  Contribution,
  Gate,
  GateTap,
  Guard,
  GuardTap,
  Hook,
  HookEntry,
  HookFactory,
  HookOptions,
  HooksOf,
  HookTable,
  Notify,
  NotifyTap,
  OwnHook,
  Pipeline,
  PipelineTap,
  Report,
  Tapper,
  TapsOf,
} from './contract/hook.js'
export { gate, guard, hookTable, notify, pipeline } from './contract/hook.js'
export type {
  Announce,
  Asked,
  Change,
  Exchange,
  Handled,
  Identified,
  Incoming,
  KernelTaps,
  Leaving,
  Written,
} from './contract/kernel-hooks.js'
export type { InjectReply, InjectRequest } from './contract/kernel-tokens.js'
export { DiskSpace, Faults, Requests, Settings } from './contract/kernel-tokens.js'
export type { Batch, Kind, Reconciler, RecordScope, Watch } from './contract/kind.js'
export { KIND_NAME, kind, watch } from './contract/kind.js'
export type { Consumer, Plugin, PluginHead, PluginState, Provider, ServiceClass } from './contract/plugin.js'
export { definePlugin, perConsumer } from './contract/plugin.js'
export type { Home, KernelOf, KernelStart, Log, PluginKernel } from './contract/plugin-kernel.js'
export type {
  Actor,
  Party,
  PartyOf,
  PutResult,
  RecordChange,
  RecordDelete,
  RecordFilter,
  RecordHead,
  Records,
  RecordWrite,
  SpecOf,
  StoredRecord,
  WireRecord,
} from './contract/record.js'
export { anonymous, isActor, operator, pluginActor, recordToWire } from './contract/record.js'
export type { Redact, RedactedStream, Redactor, SecretOptions, SecretSink, SecretSource } from './contract/redact.js'
export type {
  Annotation,
  Bytes,
  BytesBody,
  BytesReply,
  Door,
  EncodedFrame,
  Frame,
  Method,
  PathNames,
  Replies,
  Route,
  RouteBody,
  RouteDefinition,
  RouteReply,
  RouteRequest,
  SocketReply,
  StreamReply,
} from './contract/route.js'
export { accepted, channelled, created, JsonText, noContent, ok, routeOf, streamed } from './contract/route.js'
export type {
  Db,
  DiskRoom,
  Inherited,
  Migration,
  Reads,
  Room,
  Row,
  SqlValue,
  Tx,
} from './contract/storage.js'
export type {
  Command,
  CommandArgument,
  CommandOption,
  Contribute,
  EventType,
  Owned,
  OwnedRest,
  OwnedRows,
  Quiesce,
  Service,
  Setting,
  Surface,
  Tap,
} from './contract/surface.js'
export { event, surfaceOf } from './contract/surface.js'
export type { Maybe, MaybeToken, Needs, RegistryToken, Resolved, Token } from './contract/token.js'
export { maybe, registry, token } from './contract/token.js'
export { Host, type HostView } from './host-view.js'
export type {
  ColorName,
  CommandClient,
  CommandContext,
  CommandOutput,
  CommandTerminal,
} from './kit/commands/context.js'
export { onBehalfOf } from './on-behalf.js'
export { RecordErrors } from './records/errors.js'
