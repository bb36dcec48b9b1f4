import type { Command } from '../../../../kernel/plugin.js'

const forms = ['static', 'plugin', 'typescript', 'process', 'bridge']
const dir = { name: 'dir', optional: true, summary: 'folder of the extension (default: this one)' }

/** The commands for authors; all but `dev` and `logs` work without a daemon, and all without a network. */
export const authoringCommands: readonly Command[] = [
  {
    path: 'extension init',
    local: true,
    summary: 'Create a working extension with a test',
    args: [{ name: 'name', summary: 'vendor.things; a folder of that name is created here' }],
    options: [
      { name: 'form', type: 'text', values: forms, summary: 'form of the extension (default: plugin)' },
      {
        name: 'language',
        type: 'text',
        values: ['ts', 'python'],
        summary: 'language of the form bridge (default: ts)',
      },
      { name: 'dir', type: 'text', summary: 'folder to create instead' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runInit })),
  },
  {
    path: 'extension validate',
    local: true,
    summary: 'Validate an extension; its code is imported, not started',
    args: [dir],
    load: () => import('../commands.js').then(module => ({ run: module.runValidate })),
  },
  {
    path: 'extension build',
    local: true,
    summary: 'Pack an extension into an archive for svc extension install',
    args: [dir],
    options: [{ name: 'out', type: 'text', summary: 'path of the archive (default: <name>-<version>.tar.gz here)' }],
    load: () => import('../commands.js').then(module => ({ run: module.runBuild })),
  },
  {
    path: 'extension publish',
    local: true,
    summary: 'Publish an extension into a catalog folder, with checksum and signature',
    args: [dir],
    options: [
      { name: 'to', type: 'text', summary: 'folder of the catalog; created if missing' },
      {
        name: 'key',
        type: 'text',
        summary: 'PEM file of the Ed25519 signing key; create one: openssl genpkey -algorithm ed25519',
      },
      { name: 'author', type: 'text', summary: 'name of the publisher' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runPublish })),
  },
  {
    path: 'extension dev',
    summary: 'Run an extension from its folder and reload it on each change, until Ctrl-C',
    args: [dir],
    options: [
      { name: 'workspace', type: 'text', summary: 'id, name or path of the only workspace that sees it; default: all' },
      {
        name: 'confirm-network-digest',
        type: 'text',
        summary: 'digest of its network requirements, to accept them',
      },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runDev })),
  },
  {
    path: 'extension test',
    local: true,
    summary: 'Run the contract checks and the tests of an extension (*.test.mjs, *.test.ts)',
    args: [dir],
    options: [
      { name: 'filter', type: 'text', summary: 'run only tests whose names contain this text' },
      { name: 'timeout', type: 'integer', summary: 'timeout of each test file in seconds (default: 60)' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runTest })),
  },
  {
    path: 'extension logs',
    summary: 'Show the log of an extension and its load history',
    args: [{ name: 'name', summary: 'name of the extension' }],
    options: [
      { name: 'follow', type: 'boolean', summary: 'follow new output until Ctrl-C' },
      { name: 'workspace', type: 'text', summary: 'workspace of a development link; * for the link to all workspaces' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runLogs })),
  },
]
