import { defineErrors } from '../contract/errors.js'

/** Errors of the record verbs. */
export const RecordErrors = defineErrors({
  not_granted: { status: 403, message: 'this actor has no grant for this kind or scope' },
  source_mismatch: { status: 403, message: 'this record belongs to another source and only that source can change it' },
  record_exists: { status: 409, message: 'the record exists; send its version as expected_version to change it' },
  invalid_id: { status: 422, message: 'a record id is 1 to 256 characters without control characters and slashes' },
  invalid_spec: { status: 422, message: 'the spec does not match the schema of its kind' },
})
