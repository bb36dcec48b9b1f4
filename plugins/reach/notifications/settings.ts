import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'

/** A message about the end of a task that is not delivered within this time counts as an error of its subscription. */
export const BridgeNotificationTimeout: Setting<number> = {
  path: 'task.orchestration.bridge_notification_timeout',
  section: 'general',
  schema: Duration,
  default: 10_000,
  apply: 'live',
}
