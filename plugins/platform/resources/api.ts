import { defineErrors, RecordErrors } from '../../../kernel/plugin.js'

export { RateLimit, RateLimiter } from './rate-limit.js'
export * from './resource-kind.js'

export const ResourceErrors = defineErrors({
  write_rate_limited: {
    status: 429,
    message: 'too many resource writes; wait, or raise extensions.resources.operator_write_rate_limit',
  },
})

/** Errors of a deletion of a record, in addition to those of the kernel, which every route has. */
export const RECORD_DELETE_ERRORS = [RecordErrors.not_granted, RecordErrors.source_mismatch] as const

/** Errors of a write of a record. */
export const RECORD_PUT_ERRORS = [
  ...RECORD_DELETE_ERRORS,
  RecordErrors.record_exists,
  RecordErrors.invalid_id,
  RecordErrors.invalid_spec,
] as const
