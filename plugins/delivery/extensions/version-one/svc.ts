/** `svc` of an extension of `apiVersion = 1`, which had all of `svc/plugin` as well. */
export * from '../../../../kernel/index.js'
export * from './plugin.js'
export { routeOf } from './routes.js'
