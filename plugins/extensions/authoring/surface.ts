import type { Command } from '../../../kernel/plugin.js'

const forms = ['static', 'plugin', 'typescript', 'process']
const dir = { name: 'dir', optional: true, summary: 'folder of the extension (default: this one)' }

/** The commands for authors; all but `dev` and `logs` work without a daemon, and all without a network. */
export const authoringCommands: readonly Command[] = [
  {
    path: 'extension init',
    summary: 'Write a new extension that works, with its test',
    args: [{ name: 'name', summary: 'vendor.things; the folder of that name is made here' }],
    options: [
      { name: 'form', type: 'text', values: forms, summary: 'what the extension is made of (default: plugin)' },
      { name: 'dir', type: 'text', summary: 'folder to write instead' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runInit })),
  },
  {
    path: 'extension validate',
    summary: 'Say what is wrong with an extension, without running it',
    args: [dir],
    load: () => import('../commands.js').then(module => ({ run: module.runValidate })),
  },
  {
    path: 'extension build',
    summary: 'Pack an extension as an archive that svc extension install takes',
    args: [dir],
    options: [{ name: 'out', type: 'text', summary: 'file of the archive (default: <name>-<version>.tar.gz here)' }],
    load: () => import('../commands.js').then(module => ({ run: module.runBuild })),
  },
  {
    path: 'extension publish',
    summary: 'Pack an extension into the folder of a catalog and write its entry, with checksum and signature',
    args: [dir],
    options: [
      { name: 'to', type: 'text', summary: 'folder of the catalog; it is made where there is none' },
      {
        name: 'key',
        type: 'text',
        summary: 'PEM file of an Ed25519 key that signs it; make one: openssl genpkey -algorithm ed25519',
      },
      { name: 'author', type: 'text', summary: 'who publishes it, for people' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runPublish })),
  },
  {
    path: 'extension dev',
    summary: 'Run an extension from its folder and load it again at each change, until Ctrl-C',
    args: [dir],
    options: [
      { name: 'workspace', type: 'text', summary: 'id, name or path of the one it is to count in; default: all' },
      {
        name: 'confirm-network-digest',
        type: 'text',
        summary: 'digest of what it requires of the network, to agree to that',
      },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runDev })),
  },
  {
    path: 'extension test',
    summary: 'Run the contract checks of extensions and its own tests, *.test.mjs and *.test.ts',
    args: [dir],
    options: [
      { name: 'filter', type: 'text', summary: 'run only tests whose names contain this text' },
      { name: 'timeout', type: 'integer', summary: 'seconds for each file of tests (default: 60)' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runTest })),
  },
  {
    path: 'extension logs',
    summary: 'Show what an extension wrote for people, and what happened to it',
    args: [{ name: 'name', summary: 'name of the extension' }],
    options: [
      { name: 'follow', type: 'boolean', summary: 'go on with what comes, until Ctrl-C' },
      { name: 'workspace', type: 'text', summary: 'the link of a developer to this workspace; * for that to all' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runLogs })),
  },
]
