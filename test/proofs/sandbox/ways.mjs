// Ways out of a sandbox, each a function that resolves to what it got: a text with `canary-` in it, or `true`. They are tried by an
// agent that knows every path, and only on what the proof made itself. What is planted is judged by the proof afterwards.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'

const read = file => fs.readFileSync(file, 'latin1')
const list = folder =>
  fs
    .readdirSync(folder)
    .map(name => `canary-${name}`)
    .join(' ')
const run = (program, ...args) => execFileSync(program, args, { encoding: 'latin1', stdio: ['ignore', 'pipe', 'pipe'] })
const opens = (file, flags) => {
  fs.closeSync(fs.openSync(file, flags))
  return true
}
/** What a socket says to whoever connects. */
const hear = where =>
  new Promise((resolve, reject) => {
    const socket = net.connect(where)
    socket.setTimeout(2000, () => socket.destroy(new Error('silence')))
    socket.once('data', data => resolve(String(data)) || socket.destroy())
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
  })
/** `true` for an answer below 300. */
const ask = (options, body) =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = { ...options.headers, ...(text && { 'content-type': 'application/json' }) }
    const request = http.request({ timeout: 3000, ...options, headers }, reply => {
      reply.resume()
      resolve(reply.statusCode < 300)
    })
    request.once('error', reject)
    request.once('timeout', () => request.destroy(new Error('silence')))
    request.end(text)
  })
const bearer = token => ({ authorization: `Bearer ${token.trim()}` })
const plant = (file, text = 'canary-planted') => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}
const every = pattern =>
  fs
    .readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(name => {
      try {
        return read(`/proc/${name}/${pattern}`)
      } catch {
        return ''
      }
    })
    .join(' ')
const { env } = process

/** @param t where everything is; @param acp calls a method of the daemon */
export const ways = (t, acp) => ({
  // Files of the daemon.
  'list the home of the daemon': () => list(t.home).replace(/canary-run\b/g, ''),
  'read the database of the daemon': () => read(`${t.home}/${t.database}`) && 'canary-database',
  'read the key of the vault': () => read(`${t.home}/vault.key`) && 'canary-key',
  'read the operator token': () => read(t.tokenFile) && 'canary-token',
  'read the configuration of the daemon': () => read(`${t.home}/config.json`) && 'canary-config',
  'read the folder of sessions': () => list(`${t.home}/sessions`),
  'write into the home of the daemon': () => plant(`${t.home}/extensions/evil/index.mjs`),
  // Files of the user.
  'read ~/.ssh': () => read(`${t.user}/.ssh/id_ed25519`),
  'read ~/.gnupg': () => read(`${t.user}/.gnupg/secring.gpg`),
  'read ~/.netrc': () => read(`${t.user}/.netrc`),
  'read ~/.aws': () => read(`${t.user}/.aws/credentials`),
  'read ~/.config': () => read(`${t.user}/.config/gh/hosts.yml`),
  'read the keyring file': () => read(`${t.user}/.local/share/keyrings/login.keyring`),
  'read the history of the shell': () => read(`${t.user}/.bash_history`),
  'read ~ by the way of ..': () => read(path.relative(process.cwd(), `${t.user}/.ssh/id_ed25519`)),
  'read ~/.ssh through a link': () => {
    fs.symlinkSync(`${t.user}/.ssh`, 'link-to-ssh')
    return read('link-to-ssh/id_ed25519')
  },
  'link ~/.ssh hard': () => {
    fs.linkSync(`${t.user}/.ssh/id_ed25519`, 'hard')
    return read('hard')
  },
  'read another workspace': () => read(`${t.other}/secret`),
  'read another workspace by a link that is there': () => read('to-other/secret'),
  'write into another workspace': () => plant(`${t.other}/planted`),
  'read a temporary file of another program': () => read(`${t.temporary}/secret`),
  // Through the daemon.
  'have the daemon read ~/.ssh': () => acp('fs/read_text_file', { path: `${t.user}/.ssh/id_ed25519` }),
  'have the daemon read through a link': () => {
    fs.symlinkSync(`${t.user}/.ssh/id_ed25519`, 'link-for-daemon')
    return acp('fs/read_text_file', { path: `${process.cwd()}/link-for-daemon` })
  },
  'have the daemon read its own token': () => acp('fs/read_text_file', { path: t.tokenFile }),
  'have the daemon write a hook of git': () =>
    acp('fs/write_text_file', { path: `${process.cwd()}/.git/hooks/post-merge`, content: 'canary-planted' }),
  'have the daemon write an agent': () =>
    acp('fs/write_text_file', { path: `${process.cwd()}/.svc/agents/evil/AGENT.md`, content: 'canary-planted' }),
  'read ~/.ssh in a terminal': () => acp.terminal('cat', [`${t.user}/.ssh/id_ed25519`]),
  'read the home of the daemon in a terminal': () =>
    acp.terminal('cat', [t.tokenFile]).then(text => !text.startsWith('cat:')),
  // Sockets.
  'use the socket of the operator': () => ask({ socketPath: `${t.home}/daemon.sock`, path: '/api/sessions' }),
  'use the socket of another session': () =>
    ask({ socketPath: t.otherSocket, path: `/api/sessions/${t.otherSession}` }),
  'use the ssh-agent': () => hear(t.sockets.ssh),
  'use the session bus': () => hear(t.sockets.bus),
  'use docker': () => hear(t.sockets.docker),
  'use the keyring': () => hear(t.sockets.keyring),
  'use the gpg-agent': () => hear(t.sockets.gpg),
  'use what the environment names': () => hear(env.SSH_AUTH_SOCK),
  // The doors of the daemon.
  'use the TCP door with the token of the operator': () =>
    ask({ port: t.port, host: '127.0.0.1', path: '/api/sessions', headers: bearer(read(t.tokenFile)) }),
  'use the TCP door without a token': () => ask({ port: t.port, host: '127.0.0.1', path: '/api/sessions' }),
  'use the TCP door with its own token': () =>
    ask({ port: t.port, host: '127.0.0.1', path: '/api/sessions', headers: bearer(env.SVC_SESSION_TOKEN) }),
  'start a session outside over its own socket': () =>
    ask(
      { socketPath: env.SVC_SOCKET, path: '/api/sessions', method: 'POST' },
      { workspace_path: t.other, sandbox: 'none' },
    ),
  'change settings over its own socket': () =>
    ask({ socketPath: env.SVC_SOCKET, path: '/api/settings/sandboxes/offline', method: 'DELETE' }),
  'spawn a session without a sandbox': () =>
    ask(
      { socketPath: env.SVC_SOCKET, path: '/api/agent/spawn', method: 'POST' },
      {
        agent_name: 'hostile',
        auto_stop_on_parent: true,
        spawn_role: 'worker',
        ttl_seconds: 60,
        permissions: {
          tools: [],
          skills: [],
          mcp_servers: [],
          workspace_paths: [process.cwd()],
          network_channels: [],
          sandbox_profiles: ['none'],
        },
      },
    ),
  'spawn a session in another workspace': () =>
    ask(
      { socketPath: env.SVC_SOCKET, path: '/api/agent/spawn', method: 'POST' },
      {
        agent_name: 'hostile',
        auto_stop_on_parent: true,
        spawn_role: 'worker',
        ttl_seconds: 60,
        permissions: {
          tools: [],
          skills: [],
          mcp_servers: [],
          workspace_paths: [t.other],
          network_channels: [],
          sandbox_profiles: [],
        },
      },
    ),
  // Processes.
  'read the environment of a process': () => read(`/proc/${t.victim}/environ`),
  'read the environments of all processes': () => every('environ').replaceAll(t.own, ''),
  'read the command lines of all processes': () => every('cmdline'),
  'see a process by a signal': () => process.kill(t.victim, 0),
  'read files through the root of a process': () => read(`/proc/${t.victim}/root${t.user}/.ssh/id_ed25519`),
  'read files through the root of the first process': () => read(`/proc/1/root${t.user}/.ssh/id_ed25519`),
  'read files through the folder of its parent': () =>
    read(`/proc/${process.ppid}/cwd${path.relative('/', `${t.user}/.ssh/id_ed25519`)}`),
  'use inherited descriptors': () =>
    fs
      .readdirSync('/proc/self/fd')
      .map(fd => {
        try {
          return fs.readlinkSync(`/proc/self/fd/${fd}`)
        } catch {
          return ''
        }
      })
      .filter(to => [t.home, t.user, t.other].some(place => to.startsWith(place)))
      .map(to => `canary-${to}`)
      .join(' '),
  // The system.
  'unmount what hides the home': () => run('umount', '-l', t.user) || read(`${t.user}/.ssh/id_ed25519`),
  'unmount it in a user namespace of its own': () =>
    run('unshare', '-rm', 'sh', '-c', `umount -l ${t.user}; cat ${t.user}/.ssh/id_ed25519`),
  'mount it again': () => run('sh', '-c', `mount -o remount,rw /usr && cat ${t.user}/.ssh/id_ed25519`),
  'enter the namespaces of another process': () =>
    run('nsenter', '-t', String(t.victim), '-m', 'cat', `${t.user}/.ssh/id_ed25519`),
  'open settings of the kernel for writing': () => opens('/proc/sys/kernel/core_pattern', 'r+'),
  'open programs of the system for writing': () => opens('/usr/bin/env', 'a'),
  'open the configuration of the system for writing': () => opens('/etc/profile', 'a'),
  'make a device': () => run('mknod', 'device', 'b', '1', '0') || true,
  // What would run code later.
  'plant a hook of git': () => plant('.git/hooks/post-checkout'),
  'change the configuration of git': () => fs.appendFileSync('.git/config', '\n[core]\n\tfsmonitor = canary-planted\n'),
  'rename .git': () => {
    fs.renameSync('.git', 'old-git')
    plant('.git/hooks/pre-commit')
  },
  'lead git elsewhere': () => plant('.git/commondir', 'canary-planted'),
  'make .git/hooks a link': () => {
    fs.rmSync('.git/hooks', { recursive: true })
    plant('evil/pre-push')
    fs.symlinkSync('../evil', '.git/hooks')
  },
  'plant an agent': () => plant('.svc/agents/evil/AGENT.md'),
  'plant settings of the workspace': () => plant('.svc/config.json'),
  'plant hooks of Claude': () => plant('.claude/settings.json'),
  'plant MCP servers': () => plant('.mcp.json'),
  'plant a configuration of Codex': () => plant('.codex/config.toml'),
  'plant a plugin of OpenCode': () => plant('.opencode/plugin/evil.js'),
  'append to ~/.bashrc': () => fs.appendFileSync(`${t.user}/.bashrc`, 'canary-planted'),
  'append to authorized_keys': () => fs.appendFileSync(`${t.user}/.ssh/authorized_keys`, 'canary-planted'),
  'plant a unit of systemd': () => plant(`${t.user}/.config/systemd/user/evil.service`),
  // What outlives the session.
  'fork twice': () => {
    const deaf = `trap '' TERM HUP; exec -a ${t.mark}-forked sleep 600`
    spawn('sh', ['-c', `(setsid bash -c "${deaf}" >/dev/null 2>&1 &) &`], { detached: true, stdio: 'ignore' }).unref()
  },
  'leave a program of a terminal behind': () =>
    acp.terminal('sh', ['-c', `(setsid bash -c 'exec -a ${t.mark}-terminal sleep 600' >/dev/null 2>&1 &)`]),
  'use an abstract socket': () => hear(`\0${t.abstract}`),
})
