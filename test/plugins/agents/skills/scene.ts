import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Plugin } from '../../../../kernel/plugin.js'
import {
  agents,
  daemon,
  extensions,
  providers,
  resources,
  settings,
  skills,
  trust,
  workspaces,
} from '../../../../plugins/index.js'
import { validateReply } from '../../../harness/contract.js'
import { boot, type Reply, temporaryFolder } from '../../../harness/kernel.js'

/** A SKILL.md with this name; `more` are further lines of its frontmatter. */
export const skillText = (name: string, body = 'Steps.', more: readonly string[] = []) =>
  `---\nname: ${name}\ndescription: What ${name} is for\n${more.map(line => `${line}\n`).join('')}---\n${body}\n`

export async function writeSkill(folder: string, name: string, body?: string, more?: readonly string[]) {
  await mkdir(path.join(folder, name), { recursive: true })
  await writeFile(path.join(folder, name, 'SKILL.md'), skillText(name, body, more))
}

/** A daemon with skills and one workspace, whose replies are held to the contract. */
export async function openSkills(
  options: { readonly home?: string; readonly root?: string; readonly plugins?: readonly Plugin[] } = {},
) {
  const home = options.home ?? (await temporaryFolder('home'))
  const root = options.root ?? (await temporaryFolder('root'))
  const kernel = await boot({
    home,
    plugins: [
      daemon,
      resources,
      workspaces,
      providers,
      agents,
      extensions,
      settings,
      trust,
      skills,
      ...(options.plugins ?? []),
    ],
  })
  const added = await kernel.request('POST', '/api/workspaces/resolve', { path: root })
  const workspaceId: string = added.body.workspace.id
  const request = async (method: string, template: string, name = '', query = ''): Promise<Reply> => {
    const reply = await kernel.request(method, template.replace('{name}', encodeURIComponent(name)) + query)
    const problems = validateReply(method, template, reply.status, reply.body)
    if (problems.length > 0) throw new Error(`${method} ${template}: ${problems.join('; ')}`)
    return reply
  }
  const here = `?workspace=${workspaceId}`
  return {
    kernel,
    home,
    root,
    workspaceId,
    here,
    request,
    homeSkills: path.join(home, 'skills'),
    workspaceSkills: path.join(root, '.svc', 'skills'),
    list: async (query = ''): Promise<Reply[]> => (await request('GET', '/api/skills', '', query)).body.skills,
    show: async (name: string, query = ''): Promise<Reply> =>
      (await request('GET', '/api/skills/{name}', name, query)).body.skill,
    trust: async () => {
      const { body } = await kernel.request('GET', `/api/workspaces/${workspaceId}/trust`)
      const reply = await kernel.request('PUT', `/api/workspaces/${workspaceId}/trust`, {
        digest: body.trust?.digest ?? body.digest,
      })
      if (reply.status !== 200) throw new Error(`trust: ${reply.status} ${JSON.stringify(reply.body)}`)
    },
    [Symbol.asyncDispose]: () => kernel.close(),
  }
}
