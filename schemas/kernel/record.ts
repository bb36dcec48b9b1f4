import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from './common.js'

/** `user` and `global` mean the same and are kept as written; `workspace` needs an id. */
export const ResourceScopeKind = v.picklist(['user', 'global', 'workspace'])
export type ResourceScopeKind = v.InferOutput<typeof ResourceScopeKind>

/** Where a record applies. Strict, because requests contain it. */
export const ResourceScope = v.strictObject({ kind: ResourceScopeKind, id: v.optional(v.string()) })
export type ResourceScope = v.InferOutput<typeof ResourceScope>

/** An owner or a source of a record. */
export const ResourceParty = v.object({ kind: v.string(), id: v.string() })
export type ResourceParty = v.InferOutput<typeof ResourceParty>

/** One stored desired-state resource. */
export const ResourceRecord = v.object({
  id: v.string(),
  kind: v.string(),
  scope: ResourceScope,
  owner: ResourceParty,
  source: ResourceParty,
  spec: v.unknown(),
  version: Integer,
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type ResourceRecord = v.InferOutput<typeof ResourceRecord>

/** PUT of a record; `expected_version` 0 or absent means that the record must not exist. The kind's codec validates `spec`. */
export const PutRecordBody = v.strictObject({
  expected_version: v.optional(Integer),
  scope: ResourceScope,
  spec: v.unknown(),
})
export type PutRecordBody = v.InferOutput<typeof PutRecordBody>

/** DELETE of a record; the current version is required. */
export const DeleteRecordBody = v.strictObject({ expected_version: Integer })
export type DeleteRecordBody = v.InferOutput<typeof DeleteRecordBody>

/** Filters of a list of records; a kind and its id come in pairs, `limit` 0 means no limit. */
export const ListRecordsQuery = v.object({
  kind: v.optional(v.string()),
  scope_kind: v.optional(ResourceScopeKind),
  scope_id: v.optional(v.string()),
  owner_kind: v.optional(v.string()),
  owner_id: v.optional(v.string()),
  source_kind: v.optional(v.string()),
  source_id: v.optional(v.string()),
  limit: v.optional(queryInteger()),
})
export type ListRecordsQuery = v.InferOutput<typeof ListRecordsQuery>

/** GET /api/resources and GET /api/resources/{kind}. */
export const ListRecordsReply = v.object({ records: v.array(ResourceRecord) })
export type ListRecordsReply = v.InferOutput<typeof ListRecordsReply>

/** GET and PUT of one record. */
export const RecordReply = v.object({ record: ResourceRecord })
export type RecordReply = v.InferOutput<typeof RecordReply>
