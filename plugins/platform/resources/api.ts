import { defineErrors } from '../../../kernel/plugin.js'

export { RateLimit, RateLimiter } from './rate-limit.js'
export * from './resource-kind.js'

export const ResourceErrors = defineErrors({
  write_rate_limited: {
    status: 429,
    message: 'too many resource writes; wait, or raise extensions.resources.operator_write_rate_limit',
  },
})
