import { place } from '../../core/router.js'
import { text } from '../../text.js'
import { lazyView } from '../../ui/lazy.js'

const View = lazyView(text.automation.title, async () => (await import('./views.js')).AutomationView)

/** Jobs, triggers and their calendar. */
export function Automation() {
  const [, part = 'jobs', ...at] = place.value
  return <View part={part} at={at} />
}
