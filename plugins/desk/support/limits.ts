/** Value of `schema_version` in a manifest. */
export const SCHEMA_VERSION = 'support-bundle.v1'
/** Version of the redaction rules of a bundle. */
export const REDACTION_VERSION = 'support-redaction.v1'

const MIB = 1024 * 1024

/** Most bytes of an uncompressed bundle and of its parts. */
export const Limits = {
  bundle: 25 * MIB,
  artifact: MIB,
  logTail: 2 * MIB,
  events: 5 * MIB,
} as const

/** Milliseconds that archives and operations are kept. */
export const RETENTION_MS = 24 * 3_600_000
/** Most bundles that wait while another is made. */
export const MOST_WAITING = 8

/** Folder of the archives below the home. */
export const FOLDER = 'support-bundles'

/** The files of a bundle except its manifest, each with its description in the consent prompt. */
export const CONTENTS: readonly (readonly [path: string, what: string])[] = [
  ['summary.md', 'what is wrong and what to look at, in words'],
  ['doctor.json', 'problems that svc doctor finds'],
  ['status.json', 'the state of the daemon and its parts'],
  ['providers.json', 'agent programs: installed, logged in'],
  ['config-apply-records.json', 'changes of settings, by key'],
  ['event-summaries.json', 'what happened, one line an event'],
  ['sessions.json', 'names and states of sessions, no transcripts'],
  ['config-redacted.json', 'config.json without secrets'],
  ['logs-tail.txt', 'the end of the log'],
  ['versions.json', 'versions of svc, Node.js, system, plugins'],
  ['home-tree.json', 'names, sizes and times of files, no contents'],
  ['liveness.json', 'memory, delays and handles of the last hours'],
]
