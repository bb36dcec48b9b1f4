import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'

/** Whether the overview counts events. Those missed while disabled are not counted later. */
export const CountingEnabled: Setting<boolean> = {
  path: 'observability.enabled',
  section: 'observability',
  schema: v.pipe(v.boolean(), v.description('Whether events, runs and hooks are counted for the overview')),
  default: true,
  apply: 'restart-required',
}
