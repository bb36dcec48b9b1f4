import type { ConsoleLinkReply, EndConsoleReply } from '../../schemas/daemon/console.js'
import type { LocalContext } from '../local.js'
import { openBrowser } from '../open-browser.js'

/** `svc open`: prints a link to the console, and opens it where a person sits at a display. */
export async function openConsole({ client, io, options, out, terminal }: LocalContext): Promise<undefined> {
  if (options.revoke === true) {
    const reply = (await client.request('DELETE', '/api/console/sessions')) as EndConsoleReply
    if (out.json) out.value(reply)
    else out.line(`ended ${reply.ended} ${reply.ended === 1 ? 'session' : 'sessions'} of the console`)
    return undefined
  }
  const { link } = (await client.request('POST', '/api/console/links')) as ConsoleLinkReply
  if (out.json) {
    out.value({ link })
    return undefined
  }
  out.line(link.url)
  out.line('The link is valid once, for five minutes.')
  const hasDisplay = process.platform === 'darwin' || Boolean(io.env.DISPLAY || io.env.WAYLAND_DISPLAY)
  if (terminal && hasDisplay && options['no-browser'] !== true) openBrowser(link.url)
  return undefined
}
