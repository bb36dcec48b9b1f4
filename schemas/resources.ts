/** Desired-state resources. The record is the kernel's own; these are its public routes. */
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
