import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'

export const CatalogTimeout: Setting<string> = {
  path: 'marketplace.catalog.timeout',
  section: 'hooks-extensions',
  schema: v.pipe(
    v.string(),
    v.check(text => (durationMs(text) ?? 0) >= 100 && (durationMs(text) ?? 0) <= 300_000, 'a duration of 100ms to 5m'),
    v.description('Timeout for one file of the marketplace catalog'),
  ),
  default: '10s',
  apply: 'live',
}
