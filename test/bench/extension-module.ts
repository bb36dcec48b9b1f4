/** The extension that comes, goes and changes: ten routes, each written out as an author would. */
export const NAME = 'bench.routes'

export const manifest = `name = "${NAME}"\nversion = "1.0.0"\napiVersion = 1\nmain = "main.js"\n`

/** Its module, another one in each generation. */
export function moduleOf(generation: number): string {
  const routes = Array.from(
    { length: 10 },
    (_, n) => `    route({
      method: 'GET',
      path: '/api/ext/${NAME}/${n}',
      area: 'Bench',
      summary: 'Says a text, and which route it was',
      replies: { 200: v.object({ route: v.number(), text: v.string() }) },
      handle: self => ok({ route: ${n}, text: self.text }),
    }),`,
  ).join('\n')
  return `import { definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'

const route = routeOf()

class Texts {
  text = 'generation ${generation}'
}

export default definePlugin({ name: '${NAME}', version: '1.0.0', service: async () => Texts }).surface({
  routes: [
${routes}
  ],
})
`
}
