! Every rank opens the file named by the first argument, adds a line, and meets the others again and again.
program fortran_file
  use mpi
  implicit none
  character(len=1024) :: path
  integer :: rank, i, code

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call get_command_argument(1, path)
  open (unit=10, file=trim(path), position='append', action='write')
  write (10, *) rank
  close (10)
  do i = 1, 20
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end do
  call MPI_Finalize(code)
end program fortran_file
