import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'

const setting = settingsSection({ path: 'redact', section: 'general', apply: 'restart-required' })

/** Whether registered values are replaced. */
export const RedactionEnabled = setting('enabled', v.boolean(), true)
