import * as v from 'valibot'
import { event } from '../../../../kernel/plugin.js'

/** The process of an extension failed so often in a row that it is not started again by itself. */
export const ExtensionCrashLoop = event(
  'extension.crash_loop.backoff',
  v.object({ name: v.string(), failures: v.number(), error: v.string() }),
)
