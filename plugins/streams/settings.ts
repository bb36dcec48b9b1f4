import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'

/** Streams that may be open through one door at a time. */
export const MaxStreams: Setting<number> = {
  path: 'http.max_streams',
  section: 'general',
  schema: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100_000)),
  default: 1000,
  apply: 'live',
}
