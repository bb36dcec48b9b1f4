/** Desired-state resources (Specification A). The record is the kernel's own; this is its public address. */
export {
  DeleteRecordBody,
  ListRecordsQuery,
  ListRecordsReply,
  PutRecordBody,
  RecordReply,
  ResourceParty,
  ResourceRecord,
  ResourceScope,
  ResourceScopeKind,
} from './kernel/record.js'
