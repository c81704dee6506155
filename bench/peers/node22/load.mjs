/** Imports a peer from this folder's own install. */
export const load = (name) => import(name)
