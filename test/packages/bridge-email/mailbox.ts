import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmail } from '../../../packages/bridge-email/src/bridge.js'
import { manifest } from '../../../packages/bridge-email/src/manifest.js'
import { realTiming, type Timing } from '../../../packages/bridge-kit/src/index.js'
import { remove } from '../../harness/mail-servers.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const running = new Set<() => Promise<void>>()

/** Stops what a test that failed has left. */
export const stopAll = async () => {
  for (const stop of running) await stop()
}

/** The adapter on the mailbox of `bot`. */
export async function startBridge(
  ports: { readonly imap: number; readonly smtp: number },
  more: object = {},
  folder?: string,
  prepare: (daemon: ScriptedDaemon) => void = () => {},
  secrets: Readonly<Record<string, string>> = { password: 'secret' },
) {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'svc-bridge-email-')))
  const config = {
    address: 'bot@example.test',
    from_name: 'Bot',
    imap_host: '127.0.0.1',
    imap_port: ports.imap,
    imap_security: 'none',
    imap_user: 'bot',
    smtp_host: '127.0.0.1',
    smtp_port: ports.smtp,
    smtp_security: 'none',
    idle_seconds: 60,
    ...more,
  }
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: (instance, host) => openEmail(instance, host, quick) })
  daemon.dataDir = dataDir
  prepare(daemon)
  await daemon.initialize([managed('bri_1', config, secrets)])
  const stop = async (keep = false) => {
    running.delete(stop)
    await daemon.shutdown()
    if (!keep) await remove(dataDir)
  }
  running.add(stop)
  return { daemon, dataDir, stop }
}

/** Time of which a second is a twentieth: a server that is silent for 20 seconds is found out after one. */
const quick: Timing = { ...realTiming, sleep: (ms, signal) => realTiming.sleep(ms / 20, signal) }

let ids = 0
/** A message to the bot. */
export function message(text: string, headers: Readonly<Record<string, string | undefined>> = {}): string {
  const all = {
    From: 'Ann Example <ann@example.test>',
    To: 'bot@example.test',
    Subject: 'Question',
    Date: 'Sat, 28 Nov 2026 10:00:00 +0000',
    'Message-ID': `<q${++ids}.${process.pid}@example.test>`,
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return `${lines.join('\n')}\n\n${text}\n`
}
