import * as v from 'valibot'
import { settingsSection } from '../../../../kernel/kit/settings.js'

const live = settingsSection({ path: 'console.push', section: 'general', apply: 'live' })
const isContact = (text: string) => URL.canParse(text) && ['mailto:', 'https:'].includes(new URL(text).protocol)

export const PushSettings = {
  enabled: live('enabled', v.boolean(), false),
  contact: live(
    'contact',
    v.pipe(v.string(), v.maxLength(200), v.check(isContact, 'mailto:<address> or https://<page>')),
    'mailto:svc@svc.invalid',
  ),
}
