import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'

/** Whether sessions and runs may take part in channels. */
export const NetworkEnabled: Setting<boolean> = {
  path: 'network.enabled',
  section: 'network',
  schema: v.pipe(
    v.boolean(),
    v.description('Whether sessions and runs may take part in channels, and are woken by messages'),
  ),
  default: true,
  apply: 'live',
}
