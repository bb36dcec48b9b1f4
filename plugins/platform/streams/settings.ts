import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'

const setting = settingsSection({ path: 'http', section: 'general', apply: 'live' })
const COUNT = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100_000))

/** Streams that may be open through one door at a time. */
export const MaxStreams = setting('max_streams', COUNT, 1000)
