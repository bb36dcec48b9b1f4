/** What `schema_version` of a manifest says. */
export const SCHEMA_VERSION = 'support-bundle.v1'
/** What hides secrets in a bundle; another version hides other things. */
export const REDACTION_VERSION = 'support-redaction.v1'

const MIB = 1024 * 1024

/** Bytes of a bundle before it is compressed, and of its parts. */
export const Limits = {
  bundle: 25 * MIB,
  artifact: MIB,
  logTail: 2 * MIB,
  events: 5 * MIB,
} as const

/** Archives and operations are kept so long, in milliseconds. */
export const RETENTION_MS = 24 * 3_600_000
/** Bundles that wait for the one that is made. */
export const MOST_WAITING = 8

/** Folder of the archives below the home. */
export const FOLDER = 'support-bundles'

/** The files of a bundle without its manifest, each with the text that the question for consent shows. */
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
