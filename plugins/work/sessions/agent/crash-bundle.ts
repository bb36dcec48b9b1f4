import { mkdir, open, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Redact } from '../../../../kernel/plugin.js'
import { redactEnvironment, redactText } from '../../../platform/redaction/api.js'
import type { AgentFailure } from '../../acp/api.js'
import type { SessionFailure } from '../api.js'
import { boundText } from '../journal/bounds.js'

const MAX_BUNDLES = 100
const MAX_SUMMARY = 1000

/** Facts about a failed process for its crash bundle. */
export interface CrashReport {
  readonly sessionId: string
  readonly agentName: string
  readonly workspaceId: string
  readonly turnId: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stderr: string
  readonly junk: readonly string[]
  readonly at: string
}

/** A failure for people: redacted and bounded. */
export function plainFailure(failure: AgentFailure, redact: Redact): SessionFailure {
  return { kind: failure.kind, summary: boundText(redactText(redact.text(failure.message)), MAX_SUMMARY) }
}

/** Writes a crash bundle (JSON, mode 0600) into `folder` and returns the failure that names it. */
export async function writeCrashBundle(
  folder: string,
  failure: AgentFailure,
  crash: CrashReport,
  redact: Redact,
): Promise<SessionFailure> {
  const plain = plainFailure(failure, redact)
  const report = redact.value(crash)
  const file = path.join(folder, `${report.at.replace(/[^0-9TZ]/g, '')}-${report.sessionId}.json`)
  const bundle = {
    schema: 'svc.crash-bundle.v1',
    at: report.at,
    session_id: report.sessionId,
    agent_name: report.agentName,
    workspace_id: report.workspaceId,
    ...(report.turnId && { turn_id: report.turnId }),
    failure: { kind: plain.kind, summary: plain.summary },
    process: {
      argv: report.argv.map(redactText),
      cwd: report.cwd,
      env: redactEnvironment(report.env),
      stderr_tail: redactText(report.stderr),
      other_output: report.junk.map(redactText),
    },
  }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(`${JSON.stringify(bundle, undefined, 2)}\n`)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await prune(folder)
  return { ...plain, crashBundlePath: file }
}

/** Deletes the oldest bundles beyond the limit. File names begin with their time, so they sort by age. */
async function prune(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter(name => name.endsWith('.json')).sort()
  for (const name of names.slice(0, Math.max(0, names.length - MAX_BUNDLES)))
    await rm(path.join(folder, name), { force: true })
}
