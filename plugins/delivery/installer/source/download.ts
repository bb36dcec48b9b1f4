import type { Clock } from '../../../../kernel/plugin.js'
import { DownloadError, download as fetchBounded } from '../../extensions/api.js'
import { InstallErrors, refused } from '../errors.js'
import { limits } from './limits.js'

/**
 * Downloads from an http or https address that a person named: at most {@link limits.archiveBytes}, within {@link
 * limits.downloadMs}.
 * @throws Fault `extension_source_unreachable`, `extension_content_refused`
 */
export async function download(clock: Clock, url: string): Promise<Buffer> {
  const named = new URL(url)
  const rules = { clock, named, maxBytes: limits.archiveBytes, timeoutMs: limits.downloadMs }
  try {
    return await fetchBounded(named, rules)
  } catch (error) {
    if (!(error instanceof DownloadError)) throw error
    if (error.problem === 'too_large')
      throw refused('too_large', `the archive has more than ${limits.archiveBytes} bytes`)
    throw InstallErrors.extension_source_unreachable(`the archive cannot be fetched: ${error.message}`)
  }
}
