import * as v from 'valibot'
import { event } from '../../../kernel/plugin.js'

/** The process of an extension failed too often in a row and is not restarted automatically. */
export const ExtensionCrashLoop = event(
  'extension.crash_loop.backoff',
  v.object({ name: v.string(), failures: v.number(), error: v.string() }),
)
